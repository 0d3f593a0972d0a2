"""What one look at the admin page costs: CPU of the server for the first look, an unchanged one, and a changed one.

The database holds copies of one real session, so that thousands of people are made in a moment.

    python benchmarks/admin.py                        2,337 people with 15 answers each, SQLite
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from tradeoff import Answer, load
from tradeoff.apps.web.app import make_app
from tradeoff.stores import open_store
from tradeoff.studies import Sessions, Study


async def cpu(client: httpx.AsyncClient, path: str) -> float:
    """Return the milliseconds of CPU that one request takes."""
    begun = time.process_time()
    done = await client.get(path)
    done.raise_for_status()
    return 1e3 * (time.process_time() - begun)


async def measure(people: int, answers: int, folder: Path, views: int) -> None:
    """Fill a database, look at the page, and print what it took."""
    problem = load("commute")
    with open_store(f"sqlite:///{folder / 'crowd.db'}") as store:
        study = Study.of(problem, "crowd", checks=False, strategy="paper")
        sessions = Sessions(study, problem, store)
        token = sessions.open()
        for _ in range(answers):
            with sessions.session(token) as session:
                asked = session.ask()
                if asked is None:
                    break
                session.tell(asked.turn, None if asked.turn % 4 == 0 else Answer.FIRST)
        with sessions.session(token) as session:
            session.ask()
        events = store.read(study.name, token)
        for i in range(people - 1):
            store.create(study.name, f"copy-{i}", events)
        app = make_app(sessions, problem)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            here = f"/admin/{study.admin}"
            print(f"{people:,} people, {len(events)} events each; milliseconds of CPU")
            print(f"{'first look':<24}{await cpu(client, here):>9.1f}")
            unchanged = sorted([await cpu(client, here) for _ in range(views)])
            print(f"{'nothing has changed':<24}{unchanged[views // 2]:>9.1f}")
            changed = []
            for i in range(views):
                store.append(study.name, f"copy-{i}", events[-1:], after=len(events))
                changed.append(await cpu(client, here))
            print(f"{'one person answered':<24}{sorted(changed)[views // 2]:>9.1f}")
            checks = [await cpu(client, f"{here}/version") for _ in range(views)]
            print(f"{'is anything new?':<24}{sorted(checks)[views // 2]:>9.1f}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=2_337)
    parser.add_argument("--answers", type=int, default=15)
    parser.add_argument("--views", type=int, default=5, help="looks of each kind; the median is printed")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(measure(given.people, given.answers, Path(name), given.views))


if __name__ == "__main__":
    main()
