"""The admin page: true at every moment, cheap when nothing has changed, and whole when a log is damaged."""

from __future__ import annotations

import asyncio
import io
import random
import re
import sqlite3
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.processes import PATIENCE
from tests.studies.test_service import new_service, says
from tests.web.servers import Server, begin, turn_of
from tradeoff import load
from tradeoff.apps.web.admin import FEW, Overview
from tradeoff.model import EQUAL, FIRST, SECOND, SKIP
from tradeoff.stores import open_store
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import Study
from tradeoff.studies.export import participant_rows


class Counting(InMemoryStore):
    """A store that counts how many logs were read."""

    reads = 0

    def read(self, folder: str, name: str, *, after: int = 0) -> list[dict[str, Any]]:
        self.reads += 1
        return super().read(folder, name, after=after)


def minute(time: str | None) -> str:
    return (time or "")[:16].replace("T", " ")


def test_overview_is_what_the_whole_logs_say_and_reads_only_what_grew() -> None:
    """People come, answer and take back in any order; the summary is always that of a fresh reading."""
    problem, rng, store = load("coffee"), random.Random(3), Counting()
    service = new_service(store, problem)
    study, overview = service.study, Overview(service)
    tokens: list[str] = []

    async def act(kind: str) -> set[str]:
        """Let somebody do something; return whose log has grown."""
        if kind in ("come", "invite"):
            tokens.append(await service.begin() if kind == "come" else service.invite())
            return {tokens[-1]}
        if not tokens:
            return set()
        token = rng.choice(tokens)
        position = await service.question(token, begin=True)
        if kind == "undo" and position.answered:
            await service.undo(token)
        elif kind == "answer" and position.prompt is not None:
            await service.answer(token, position.turn, says(rng.choice([SKIP, EQUAL, FIRST, SECOND])))
        return {token}

    for _ in range(60):
        touched = set()
        for _ in range(rng.randrange(4)):
            touched |= asyncio.run(act(rng.choice(["come", "invite", "answer", "answer", "answer", "undo"])))
        before = store.reads
        found = overview.participants()[1]
        assert store.reads - before <= len(touched)
        rows = participant_rows(problem, store.logs(study.name))
        expected = [(minute(row["begun"]), minute(row["last"]), row["answers"], row["finished"]) for row in rows]
        assert [(one.begun, one.last, one.answers, one.finished) for one in found] == expected
        assert [one.token for one in found] == tokens
    assert len(tokens) > 10 and any(one.answers for one in found)


def test_the_version_changes_exactly_when_a_log_does() -> None:
    service = new_service()
    overview = Overview(service)

    async def run() -> None:
        seen = [overview.version()]
        token = await service.begin()
        seen.append(overview.version())
        await service.answer(token, 1, says(SKIP))
        seen.append(overview.version())
        assert len(set(seen)) == 3
        await service.events(token)
        assert overview.version() == overview.participants()[0] == seen[-1]

    asyncio.run(run())


def test_many_logs_are_read_together() -> None:
    service = new_service()
    tokens = [service.invite() for _ in range(FEW + 5)]
    overview = Overview(service)
    assert [one.token for one in overview.participants()[1]] == tokens
    assert overview.logs_read == len(tokens)
    overview.participants()
    assert overview.logs_read == len(tokens)


DAMAGE = [
    "UPDATE events SET body = '{broken' WHERE position = 1",
    "UPDATE events SET body = '[]' WHERE position = 0",
    'UPDATE events SET body = \'{"event": "question"}\' WHERE position = 1',  # without time and values
    "DELETE FROM events WHERE position = 1",
]


@pytest.mark.parametrize("damage", DAMAGE)
def test_one_damaged_log_takes_nothing_from_the_others(tmp_path: Path, damage: str) -> None:
    """The admin page and the export show everybody else, and name who is missing."""
    with Server(tmp_path, "serve", "coffee", "--strategy", "paper") as server, server.client() as client:
        people = [begin(client) for _ in range(3)]
        for here in people:
            client.post(f"{here}/answer", data={"turn": str(turn_of(client.get(here).text)), "best": "1"})
        assert server.stop() == 0
    token = people[1].rpartition("/")[2]
    with closing(sqlite3.connect(tmp_path / "tradeoff.db")) as connection, connection:
        changed = connection.execute(f"{damage} AND log = (SELECT id FROM logs WHERE name = ?)", [token])
        assert changed.rowcount == 1
    with Server(tmp_path, "serve", "coffee", "--strategy", "paper") as server, server.client() as client:
        for _ in range(2):
            page = client.get(server.admin)
            assert page.status_code == 200
            assert people[0] in page.text and people[2] in page.text and "Participant 2:" in page.text
        assert "Participant 1:" not in page.text
        export = client.get(f"{server.admin}/export.zip")
        assert export.status_code == 200
        with zipfile.ZipFile(io.BytesIO(export.content)) as archive:
            rows = archive.read("participants.csv").decode().splitlines()
            assert [row.partition(",")[0] for row in rows[1:]] == ["1", "3"]
            assert "participant 2" in archive.read("README.txt").decode()
        assert client.get(people[0]).status_code == 200
        own = client.get(people[1])
        assert own.status_code in (200, 500) and "not saved" not in own.text


def test_the_page_asks_only_whether_something_is_new(tmp_path: Path) -> None:
    with Server(tmp_path, "serve", "coffee", "--strategy", "paper") as server, server.client() as client:
        here = begin(client)

        def page_and_version() -> tuple[str, str]:
            text = client.get(server.admin).text
            found = re.search(r'data-version="(\w+)" data-address="([^"]+)"', text)
            assert found is not None and found[2] == f"{server.admin}/version"
            version = client.get(found[2])
            assert version.status_code == 200 and version.text == found[1]
            return text, version.text

        assert page_and_version() == page_and_version()
        before = page_and_version()
        client.post(f"{here}/answer", data={"turn": "1", "best": "1"})
        after = page_and_version()
        assert after[1] != before[1] and after[0] != before[0]
        for path in ("version", "together"):
            assert client.get(f"{server.admin}/{path}").status_code == 200
            wrong = httpx.get(f"{server.address}/admin/wrong/{path}", timeout=PATIENCE)
            assert wrong.status_code == 404
        with open_store(f"sqlite:///{tmp_path / 'tradeoff.db'}", write=False) as store:
            (name,) = Study.names(store)
            assert list(store.lengths(name)) == [here.rpartition("/")[2]]
