"""A study: a problem, a strategy, texts and a seed, all fixed before the first person answers."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tradeoff.errors import ArgumentError, ProblemError, StoreError
from tradeoff.log import upgrade_settings
from tradeoff.problem import Problem
from tradeoff.stores import ConflictError, MissingError, Store
from tradeoff.stores.base import NAME

if TYPE_CHECKING:
    from tradeoff.sources import AnyProblem

FORMAT = "tradeoff-study/1"
FOLDER = "studies"  # in the store; the participants of each study have a folder of their own
TEXTS = ("title", "welcome", "question", "thanks")
LONGEST_TEXT = 20_000
LARGEST_PROBLEM = 48 << 20  # bytes, in the store


@dataclass(frozen=True)
class Study:
    """Everything that is the same for all participants."""

    name: str
    problem: str  # its name when the study was created
    fingerprint: str
    source: Mapping[str, Any] = field(default_factory=dict)  # the "name" and "options" it was loaded with
    strategy: str = "careful"
    settings: Mapping[str, Any] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    seed: int = 0
    checks: bool = True
    open: bool = True  # whether anyone can take part, or only people with a link
    admin: str = ""  # the secret in the address of the admin page
    created: str = ""
    sharing: bool = True  # whether people can make a link to their result for others

    @classmethod
    def of(cls, problem: AnyProblem, name: str, **given: Any) -> Study:
        """Return a new study of a problem; ``given`` are fields of the study."""
        if not NAME.fullmatch(name) or name == FOLDER or name != name.lower() or len(name) > 64:
            raise ArgumentError(
                f"a study cannot be called {name!r:.80}; use at most 64 lower-case letters, digits, - and _"
            )
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
            Interview(problem, order_seed=self.seed, **self.interview_settings())
        except TypeError as error:
            raise ArgumentError(f"the strategy {self.strategy!r} does not accept this setting: {error}") from None

    def check_same(self, problem: Problem) -> None:
        """Raise a StoreError unless this is the problem that the study was created with."""
        if problem.fingerprint != self.fingerprint:
            raise StoreError(
                f"the problem {self.problem!r} of the study {self.name!r} is not what it was when the study was made; "
                "bring the old one back, or create a new study"
            )

    def interview_settings(self) -> dict[str, Any]:
        """Return the settings of every interview, except for the order of options."""
        from tradeoff.strategies import spec_of

        settings = dict(self.settings)
        if spec_of(self.strategy).seeded:
            settings.setdefault("seed", self.seed)
        return {"strategy": self.strategy, **settings}

    def order_seed(self, token: str) -> int:
        """Return the seed of the order in which a participant sees the options; it depends only on the token."""
        return int.from_bytes(hashlib.sha256(f"{self.seed}/{token}".encode()).digest()[:4], "big")

    def token_of(self, purpose: str, key: str) -> str:
        """Return 22 characters that are safe in an address, and that nobody can compute without the study's secret."""
        digest = hmac.new(self.admin.encode(), f"{purpose}/{self.name}/{key}".encode(), hashlib.sha256).digest()
        return base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")

    # --- storing ------------------------------------------------------------------------------------------------------

    def save(self, store: Store, problem: AnyProblem) -> None:
        """Write the study and its problem to the store; raise an ArgumentError if a study of that name exists.

        A problem that cannot be stored (an optimiser or a very large model) is loaded again from its source, or must be
        named again if its source is a program.
        """
        fields = asdict(self)
        if self.sharing:  # as ever: earlier versions, which do not know the field, read what they wrote themselves
            del fields["sharing"]
        events: list[dict[str, Any]] = [{"event": "header", "format": FORMAT, "time": self.created, **fields}]
        try:
            events.append({"event": "problem", "npz": base64.b64encode(problem_bytes(problem)).decode()})
        except ProblemError:
            if not self.source:
                raise
        try:
            store.create(FOLDER, self.name, events)
        except ConflictError:
            raise ArgumentError(f"the study {self.name!r} already exists; choose another name") from None

    @classmethod
    def read(cls, store: Store, name: str) -> Study:
        """Return a study from the store."""
        return cls._from(_events(store, name)[0], name)

    @classmethod
    def _from(cls, header: Mapping[str, Any], name: str) -> Study:
        if header.get("format") != FORMAT:
            raise StoreError(
                f"the study {name!r} is written in the format {header.get('format')!r:.80}; this version reads {FORMAT!r}"
            )
        given = {key: value for key, value in header.items() if key not in ("event", "format", "time")}
        for key, value in given.items():
            if key not in KINDS or type(value) is not KINDS[key]:
                raise StoreError(f"the study {name!r} is damaged: {key[:40]!r} is {value!r:.80}")
        source, texts = given.get("source", {}), given.get("texts", {})
        if source and not (isinstance(source.get("name"), str) and isinstance(source.get("options"), dict)):
            raise StoreError(f"the study {name!r} is damaged: its source is {source!r:.80}")
        if not given.keys() >= {"name", "problem", "fingerprint"} or not all(
            isinstance(t, str) for t in texts.values()
        ):
            raise StoreError(f"the study {name!r} is damaged: its header is not complete")
        given["settings"] = upgrade_settings(given.get("settings", {}))
        return cls(**given)

    @staticmethod
    def names(store: Store) -> list[str]:
        """Return the names of all studies in the store."""
        return store.names(FOLDER)

    @staticmethod
    def problem_of(store: Store, name: str, named: AnyProblem | None = None) -> AnyProblem:
        """Return the problem of a study: the ``named`` one, the one stored with it, or its file read again.

        A store may come from a stranger, so nothing it names is ever imported or called: a problem made by a program (such
        as ``python:...``) must be named, on the command line or here. In every case, it must be the problem that the study
        was created with.
        """
        from tradeoff.sources import load, runs_code

        events = _events(store, name)
        study = Study._from(events[0], name)
        stored = next((event for event in events if event.get("event") == "problem"), None)
        if named is not None:
            problem = named
        elif stored is not None:
            problem = _stored_problem(stored, study)
        elif not study.source:
            raise StoreError(f"the study {name!r} was made without its problem; it can only be served by its program")
        elif runs_code(study.source["name"]):
            words = f"--problem {shlex.quote(study.source['name'])}"
            words += "".join(f" --with {shlex.quote(f'{k}={v}')}" for k, v in study.source["options"].items())
            raise StoreError(
                f"the problem of the study {name!r} is made by a program, {study.source['name']!r:.200}, which would be run; "
                f"if you trust that program, name it yourself: {words}"
            )
        else:
            problem = load(study.source["name"], **study.source["options"])
        study.check_same(problem)
        return problem


# The type of every field in JSON.
KINDS: dict[str, type] = {
    **dict.fromkeys(("name", "problem", "fingerprint", "strategy", "admin", "created"), str),
    **dict.fromkeys(("source", "settings", "texts"), dict),
    **dict.fromkeys(("checks", "open", "sharing"), bool),
    "seed": int,
}


def _stored_problem(event: Mapping[str, Any], study: Study) -> AnyProblem:
    """Return the problem that was stored with a study."""
    from tradeoff.sources import load

    try:
        content = base64.b64decode(event.get("npz", ""), validate=True)
    except (ValueError, TypeError):
        raise StoreError(f"the study {study.name!r} is damaged: its problem cannot be read") from None
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        path.write_bytes(content)
        problem = load(path)
    problem.name = study.problem
    return problem


def _events(store: Store, name: str) -> list[dict[str, Any]]:
    try:
        return store.read(FOLDER, name)
    except MissingError:
        known = ", ".join(store.names(FOLDER)) or "none"
        raise ArgumentError(f"there is no study {name!r:.80}; the studies are: {known}") from None


def problem_bytes(problem: AnyProblem) -> bytes:
    """Return a problem as the bytes of an .npz file."""
    from tradeoff.sources import save

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.npz"
        save(problem, path)
        data = path.read_bytes()
    if len(data) > LARGEST_PROBLEM:
        raise ProblemError(
            f"the problem takes {len(data) / 2**20:,.0f} MB; at most {LARGEST_PROBLEM >> 20} MB are stored with a study: "
            "use `tradeoff serve` with the file itself"
        )
    return data


def common_name(problem: AnyProblem, settings: Mapping[str, Any]) -> str:
    """Return the name of the study that ``tradeoff serve`` uses for this problem and these settings."""
    called = "".join(c if c.isalnum() and c.isascii() else "-" for c in problem.name.lower()).strip("-")[:40]
    digest = hashlib.sha256(f"{problem.fingerprint}/{sorted(settings.items())!r}".encode()).hexdigest()[:12]
    return f"{called or 'problem'}-{digest}"


def check_texts(texts: Mapping[str, Any]) -> None:
    """Raise an ArgumentError unless the pages can show these texts."""
    for key, text in texts.items():
        if key not in TEXTS:
            raise ArgumentError(f"a study has no text called {key!r:.60}; there are {', '.join(TEXTS)}")
        if not isinstance(text, str) or len(text) > LONGEST_TEXT:
            raise ArgumentError(f"the text {key!r} must be a string of at most {LONGEST_TEXT:,} characters")


def new_token() -> str:
    """Return 128 random bits as 22 characters that are safe in an address."""
    return secrets.token_urlsafe(16)
