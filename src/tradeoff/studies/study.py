"""A study: a problem, a way of asking, texts and a seed, fixed before the first person comes."""

from __future__ import annotations

import base64
import hashlib
import secrets
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradeoff.errors import ArgumentError, ProblemError, StoreError, TradeoffError
from tradeoff.problem import Problem
from tradeoff.stores import ConflictError, MissingError, Store
from tradeoff.stores.base import NAME

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem

FORMAT = "tradeoff-study/1"
FOLDER = "studies"  # where the store keeps them; each study's people are in a folder of its own
TEXTS = ("title", "welcome", "question", "thanks")
LONGEST_TEXT = 20_000
LARGEST_PROBLEM = 48 << 20  # bytes, in the store


@dataclass(frozen=True)
class Study:
    """What is fixed for everybody who takes part."""

    name: str
    problem: str  # what it was called when the study was made
    fingerprint: str
    source: Mapping[str, Any] = field(default_factory=dict)  # where it came from: "name" and "options" of load
    strategy: str = "careful"
    settings: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    checks: bool = True
    open: bool = True  # whether anybody can begin, or only those who were given a link
    admin: str = ""  # the secret in the address of the admin page
    created: str = ""

    @classmethod
    def of(cls, problem: AnyProblem, name: str, **given: Any) -> Study:
        """Return a new study of a problem; what is not given has its default."""
        if not NAME.fullmatch(name) or name == FOLDER or name != name.lower() or len(name) > 64:
            raise ArgumentError(f"a study cannot be called {name!r:.80}; use at most 64 small letters, digits, - and _")
        check_texts(given.get("texts", {}))
        study = cls(
            name=name,
            problem=problem.name,
            fingerprint=problem.fingerprint,
            admin=new_token(),
            created=datetime.now(UTC).isoformat(),
            **given,
        )
        study.check(problem)
        return study

    def check(self, problem: Problem) -> None:
        """Raise an ArgumentError unless the strategy and its settings can be used with the problem."""
        from tradeoff.interview import Interview

        try:
            Interview(problem, sides=self.seed, **self.interview_settings())
        except TypeError as error:
            raise ArgumentError(f"the strategy {self.strategy!r} does not know that setting: {error}") from None

    def interview_settings(self) -> dict[str, Any]:
        """Return the settings of everybody's interview, but for the sides."""
        from tradeoff.strategies import spec_of

        settings = dict(self.settings)
        if spec_of(self.strategy).seeded:
            settings.setdefault("seed", self.seed)
        return {"strategy": self.strategy, **settings}

    def sides(self, token: str) -> int:
        """Return the seed of which alternative one person sees first: theirs alone, and the same for ever."""
        return int.from_bytes(hashlib.sha256(f"{self.seed}/{token}".encode()).digest()[:4], "big")

    # --- keeping ------------------------------------------------------------------------------------------------------

    def keep(self, store: Store, problem: AnyProblem) -> None:
        """Write the study to the store, with its problem; raise an ArgumentError if there is one of that name.

        What cannot be written to a file, an optimiser or a very large model, is read again from where it came from.
        """
        events: list[dict[str, Any]] = [{"event": "header", "format": FORMAT, "time": self.created, **asdict(self)}]
        try:
            events.append({"event": "problem", "npz": base64.b64encode(problem_bytes(problem)).decode()})
        except ProblemError:
            if not self.source:
                raise
        try:
            store.create(FOLDER, self.name, events)
        except ConflictError:
            raise ArgumentError(f"there is a study {self.name!r} already; choose another name") from None

    @classmethod
    def read(cls, store: Store, name: str) -> Study:
        """Return a study that was kept."""
        return cls._from(_events(store, name)[0], name)

    @classmethod
    def _from(cls, header: Mapping[str, Any], name: str) -> Study:
        if header.get("format") != FORMAT:
            raise StoreError(
                f"the study {name!r} is written in the format {header.get('format')!r}; this version reads {FORMAT!r}"
            )
        return cls(**{key: value for key, value in header.items() if key not in ("event", "format", "time")})

    @staticmethod
    def names(store: Store) -> list[str]:
        """Return the names of all studies that are kept."""
        return store.names(FOLDER)

    @staticmethod
    def problem_of(store: Store, name: str) -> AnyProblem:
        """Return the problem of a study: the one that was kept with it, or read again and the same."""
        from tradeoff.sources import load

        events = _events(store, name)
        study = Study._from(events[0], name)
        kept = next((event for event in events if event.get("event") == "problem"), None)
        drawn = study._with_pictures()
        if drawn is not None:
            return drawn
        if kept is not None:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / "problem.npz"
                path.write_bytes(base64.b64decode(kept["npz"]))
                problem = load(path)
                problem.name = study.problem
        elif study.source:
            problem = load(study.source["name"], **study.source["options"])
        else:
            raise StoreError(f"the study {name!r} was made without its problem; it can only be served by its program")
        if problem.fingerprint != study.fingerprint:
            raise StoreError(
                f"the problem {study.problem!r} of the study {name!r} is not what it was when the study was made; "
                "bring the old one back, or create a new study"
            )
        return problem

    def _with_pictures(self) -> AnyProblem | None:
        """Return the problem read again where an environment draws it, which the kept one cannot; None if it has changed."""
        from tradeoff.sources import load

        name = str(self.source.get("name", ""))
        if not name.startswith(("gym:", "mo-gym:")):
            return None
        try:
            problem = load(name, **self.source["options"])
        except TradeoffError:  # not installed here, or of another version: the kept one does without pictures
            return None
        return problem if problem.fingerprint == self.fingerprint else None


def _events(store: Store, name: str) -> list[dict[str, Any]]:
    try:
        return store.read(FOLDER, name)
    except MissingError:
        known = ", ".join(store.names(FOLDER)) or "none"
        raise ArgumentError(f"there is no study {name!r:.80}; there are: {known}") from None


def problem_bytes(problem: AnyProblem) -> bytes:
    """Return a problem as the bytes of an .npz file."""
    from tradeoff.sources import save

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        save(problem, path)
        data = path.read_bytes()
    if len(data) > LARGEST_PROBLEM:
        raise ProblemError(
            f"the problem takes {len(data) / 2**20:,.0f} MB; at most {LARGEST_PROBLEM >> 20} MB are kept with a study: "
            "use `tradeoff serve` with the file itself"
        )
    return data


def common_name(problem: AnyProblem, settings: Mapping[str, Any]) -> str:
    """Return the name of the study that everybody shares who serves this problem in this way."""
    called = "".join(c if c.isalnum() and c.isascii() else "-" for c in problem.name.lower()).strip("-")[:40]
    digest = hashlib.sha256(f"{problem.fingerprint}/{sorted(settings.items())!r}".encode()).hexdigest()[:12]
    return f"{called or 'problem'}-{digest}"


def check_texts(texts: Mapping[str, Any]) -> None:
    """Raise an ArgumentError unless these are texts that a page has a place for."""
    for key, text in texts.items():
        if key not in TEXTS:
            raise ArgumentError(f"a study has no text called {key!r:.60}; there are {', '.join(TEXTS)}")
        if not isinstance(text, str) or len(text) > LONGEST_TEXT:
            raise ArgumentError(f"the text {key!r} must be a text of at most {LONGEST_TEXT:,} characters")


def new_token() -> str:
    """Return 128 random bits as 22 characters that are safe in an address."""
    return secrets.token_urlsafe(16)
