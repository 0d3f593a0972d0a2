"""CPU time of the admin page: the first request, an unchanged page, and a changed one.

The database holds copies of one real session, so that thousands of participants are made in a moment.

    python benchmarks/admin.py                        2,337 participants with 15 answers each, SQLite
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from tradeoff import load
from tradeoff.apps.web.app import make_app
from tradeoff.model import FIRST, SKIP
from tradeoff.stores import open_store
from tradeoff.studies import Session, Study
from tradeoff.studies.compute import Compute
from tradeoff.studies.service import Context, StudyService


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
        session = Session.begin(problem, checks=False, **study.interview_settings())
        while session.answered < answers and (asked := session.ask()) is not None:
            session.tell(asked.turn, SKIP if asked.turn % 4 == 0 else FIRST)
        session.ask()
        events = session.events
        for i in range(people):
            store.create(study.name, f"copy-{i}", events)
        app = make_app(StudyService(study, problem, store, Compute(Context, (study, {problem.fingerprint: problem}))))
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
    parser.add_argument("--people", type=int, default=2_337, metavar="N", help="participants (default 2337)")
    parser.add_argument("--answers", type=int, default=15, metavar="N", help="answers of each (default 15)")
    parser.add_argument("--views", type=int, default=5, metavar="N",
                        help="requests of each kind; the median is printed (default 5)")  # fmt: skip
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        asyncio.run(measure(given.people, given.answers, Path(name), given.views))


if __name__ == "__main__":
    main()
