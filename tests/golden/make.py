"""Writes a golden file of each current format that has none yet; one that is there is never written again.

    python -m tests.golden.make

Run it after a format's version was raised, and keep what it wrote. The first version of logs had no sides and no notes in
between; the files of it were written by the last program that wrote it, whose ``Interview`` was driven by ``interviewed``
below. ``expected.json`` says what each log came to when it was written.
"""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from tradeoff import MDP, Catalogue, Interview, LinearRespondent, Objective, cover, load, log, save
from tradeoff.model import EQUAL, FIRST, SECOND, SKIP, Question, Reply

HERE = Path(__file__).resolve().parent
WEIGHTS = [3.0, 1.0, 2.0]
WORDS = {FIRST: "first", SECOND: "second", EQUAL: "same", SKIP: "skip"}


class Clock:
    """A clock that says the same whenever the files are made."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=3.5)
        return self.now


# --- problems --------------------------------------------------------------------------------------------------------


def catalogue() -> Catalogue:
    """Return bicycles: what is quick is dear, what is light is dear, nothing is best."""
    rng = random.Random(4)
    rows = []
    for _ in range(40):
        speed, light = rng.uniform(15, 35), rng.uniform(0, 10)
        rows.append([round(8 * speed + 60 * light + rng.uniform(0, 300), 2), round(speed, 2), round(light, 2)])
    return Catalogue(
        rows,
        [Objective("price", "€", "min"), Objective("speed", "km/h"), Objective("lightness", "points")],
        [f"bicycle {i + 1}" for i in range(len(rows))],
        labels={"colour": [rng.choice(["grün", "rot", 'blau, "hell"']) for _ in rows]},
        title="Bicycles",
        about="Forty bicycles that do not exist.",
    )


def mdp() -> MDP:
    """Return a walk home: through the park or along the street, with rain by chance."""
    rows = [
        ("work", "park", 0.7, "gate", (12.0, 3.0, 0.0)), ("work", "park", 0.3, "rain", (12.0, 1.0, 0.0)),
        ("work", "street", 1.0, "corner", (6.0, 0.0, 0.0)), ("work", "bus", 0.9, "corner", (2.0, 0.5, 2.4)),
        ("work", "bus", 0.1, "rain", (9.0, 0.0, 2.4)), ("gate", "walk", 1.0, "home", (8.0, 2.0, 0.0)),
        ("gate", "run", 1.0, "home", (3.0, 0.5, 0.0)), ("rain", "walk", 1.0, "home", (9.0, -2.0, 0.0)),
        ("rain", "taxi", 1.0, "home", (3.0, 1.0, 11.5)), ("corner", "walk", 1.0, "home", (7.0, 0.5, 0.0)),
        ("corner", "taxi", 1.0, "home", (2.0, 1.0, 9.0)),
    ]  # fmt: skip
    state, action, probability, following, amounts = zip(*rows, strict=True)
    return MDP.from_columns(
        state, action, np.array(probability), following, np.array(amounts),
        horizon=3, start="work", ends=["home"],
        objectives=[Objective("time", "minutes", "min"), Objective("pleasure", "points"), Objective("cost", "€", "min")],
        places={"work": (0.0, 0.0), "gate": (1.0, 2.0), "rain": (1.0, 1.0), "corner": (2.0, 0.0), "home": (3.0, 1.0)},
        title="Walking home",
    )  # fmt: skip


# --- logs ------------------------------------------------------------------------------------------------------------


def interviewed(problem: Any, strategy: str, **settings: Any) -> Interview:
    """Return the interview of somebody who skips once and changes their mind once."""
    interview = Interview(problem, strategy, clock=Clock(), **settings)
    person = LinearRespondent.scaled(problem, WEIGHTS, 0.01)
    asked = 0
    while (question := interview.ask()) is not None:
        asked += 1
        if asked == 2:
            interview.skip()
        elif asked == 4:
            interview.tell(opposite(question, person(question)))
            interview.undo()
        else:
            interview.tell(person(question))
    return interview


def opposite(question: Question, reply: Reply) -> Reply:
    """Return the reply with the first and the last option, or the best and the worst, exchanged."""
    if question.is_pair:
        return {FIRST: SECOND, SECOND: FIRST, EQUAL: EQUAL}[reply]
    return reply if reply.best is None else Reply(reply.worst, reply.best)


def word_of(reply: Reply) -> str:
    """Return a reply in a word: of pairs as the first logs had it, of menus as "best>worst"."""
    return f"{reply.best}>{reply.worst}" if reply.worst is not None else WORDS[reply]


def came_to(interview: Interview) -> dict[str, Any]:
    """Return what must come out again."""
    found = interview.recommendation
    return {
        "finished": interview.finished,
        "answers": " ".join(
            f"{answer.number}:{'statement' if answer.statement else word_of(answer.reply)}"
            for answer in interview.answers
        ),
        "value": found.option.value.tolist(),
        "weights": found.weights.tolist(),
        "regret_bound": found.regret_bound,
    }


def write_log(path: Path, events: Any) -> None:
    """Write events as a log is written; the first golden logs had no checksums."""
    path.write_text(log.write_log(events), encoding="utf-8")


def expect(name: str, interview: Interview) -> None:
    """Note what a log came to."""
    path = HERE / "expected.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    known[name] = came_to(interview)
    path.write_text(json.dumps(known, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_session(path: Path, problem: Any, strategy: str, *, menus: bool = False) -> None:
    """Write the log of somebody in a study: orders, checks, an end. With menus also a statement and an observation."""
    from tradeoff.studies import Session

    settings = {"questions": "best-worst-4"} if menus else {}
    session = Session.begin(problem, checks=True, strategy=strategy, order_seed=11, clock=Clock(), **settings)
    if menus:
        session.know(f"{problem.objectives[0].name} >= 20%")
        session.interview.observe([problem.names[0], problem.names[1]], "first")
    person = LinearRespondent.scaled(problem, WEIGHTS, 0.01)
    before = session.turn - 1
    while (asked := session.ask()) is not None:
        reply = person(asked.question)
        if asked.turn == before + 2:
            session.tell(asked.turn, SKIP)
        elif asked.turn in (before + 4, before + 7):  # a check, and a question
            session.tell(asked.turn, asked.by_place(opposite(asked.question, reply)))
            session.undo()
        else:
            session.tell(asked.turn, asked.by_place(reply))
    write_log(path, session.events)
    expect(path.name, session.interview)


# --- studies ---------------------------------------------------------------------------------------------------------


def write_study(path: Path, problem: Any) -> None:
    """Write a study's own log, with its problem."""
    from tradeoff.stores import open_store
    from tradeoff.studies import Study

    study = Study.of(
        problem, "cycling", strategy="paper", settings={"max_questions": 30}, seed=7, texts={"title": "Bicycles é"},
        source={"name": "problem-1-bicycles.json", "options": {}},
    )  # fmt: skip
    with open_store("memory:") as store:
        study.save(store, problem)
        write_log(path, store.read("studies", "cycling"))


def write_store(path: Path, problem: Any) -> None:
    """Write a database with a study and two people, of whom one has finished, as one file."""
    from tradeoff.stores import open_store
    from tradeoff.studies import Session, Study
    from tradeoff.studies.study import new_token

    with open_store(f"sqlite:///{path}") as store:
        study = Study.of(problem, "cycling", strategy="paper", seed=7)
        study.save(store, problem)
        person = LinearRespondent.scaled(problem, WEIGHTS, 0.01)
        for most in (1000, 3):
            token = new_token()
            session = Session.begin(
                problem, checks=study.checks, order_seed=study.order_seed(token), **study.interview_settings()
            )
            while (asked := session.ask()) is not None and asked.turn <= most:
                session.tell(asked.turn, asked.by_place(person(asked.question)))
            store.create(study.name, token, session.events)
            expect(f"{path.name} {'ann' if most > 3 else 'bob'}", session.interview)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")  # one file, and nothing beside it
        connection.execute("VACUUM")
    path.with_name(f"{path.name}.lock").unlink()


def versions() -> dict[str, str]:
    """Return what a file of each current format is called."""
    from tradeoff import interview
    from tradeoff.sources.files import coverages, documents, npz
    from tradeoff.stores import schema
    from tradeoff.studies import study

    problem = documents.FORMAT.rpartition("/")[2]
    return {
        "log": f"log-{interview.FORMAT.rpartition('/')[2]}.jsonl",
        "study": f"study-{study.FORMAT.rpartition('/')[2]}.jsonl",
        "store": f"store-{schema.VERSION}.db",
        "toml": f"problem-{problem}-walk.toml",
        "json": f"problem-{problem}-bicycles.json",
        "npz": f"npz-{npz.FORMAT.rpartition('/')[2]}-walk.npz",
        "coverage": f"coverage-{coverages.FORMAT.rpartition('/')[2]}.npz",
    }


def main() -> None:
    """Write what is missing."""
    paths = {kind: HERE / name for kind, name in versions().items()}
    for kind, make in (("toml", mdp), ("json", catalogue), ("npz", mdp)):
        if not paths[kind].exists():
            save(make(), paths[kind])
    items = paths["coverage"].with_stem(f"{paths['coverage'].stem}-items")
    for path, make in ((paths["coverage"], mdp), (items, catalogue)):
        if not path.exists():
            save(cover(make(), tolerance=0.01), path)
    problem = load(paths["json"])
    if not paths["log"].exists():
        write_session(paths["log"], problem, "paper")
        write_session(paths["log"].with_stem(f"{paths['log'].stem}-careful"), problem, "careful")
        write_session(paths["log"].with_stem(f"{paths['log'].stem}-menus"), problem, "careful", menus=True)
    if not paths["study"].exists():
        write_study(paths["study"], problem)
    if not paths["store"].exists():
        write_store(paths["store"], problem)


if __name__ == "__main__":
    main()
