"""Print the source files that one answer and one question page run through, in the order of their first call.

    python tools/request_walk.py [PROBLEM]

The request is made in this process, and a thread takes the place of a worker process. ``server_files`` are what a reader who
follows a request opens: the packages apps/web, studies and stores. The rest are values (model, log) and the job itself
(strategy, presentation).
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Awaitable
from pathlib import Path
from types import FrameType

import httpx

import tradeoff
from tradeoff.apps.web.app import make_app
from tradeoff.stores.memory import InMemoryStore
from tradeoff.studies import Study
from tradeoff.studies.compute import Compute
from tradeoff.studies.service import Context, StudyService

ROOT = f"{Path(tradeoff.__file__).resolve().parent}/"
SERVER = ("apps/web/", "studies/", "stores/")


class Walk:
    """Records the files of ``tradeoff`` in which a function is called."""

    def __init__(self) -> None:
        self.files: dict[str, None] = {}
        threading.setprofile(self._profile)  # for threads that start from now on
        sys.setprofile(self._profile)

    def _profile(self, frame: FrameType, event: str, argument: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(ROOT) and file.endswith(".py"):
            self.files.setdefault(file.removeprefix(ROOT))

    async def of(self, request: Awaitable[httpx.Response]) -> list[str]:
        """Return the files of one request."""
        self.files.clear()
        reply = await request
        assert reply.status_code < 400, reply.text
        return list(self.files)


def server_files(files: list[str]) -> list[str]:
    """Return the files of the server among these."""
    return [file for file in files if file.startswith(SERVER)]


async def request_walks(name: str) -> dict[str, list[str]]:
    """Return the files of an answer, of the next question page, and of that page once it is in the cache."""
    walk = Walk()
    problem, store = tradeoff.load(name), InMemoryStore()
    study = Study.of(problem, "walk", checks=False)
    app = make_app(StudyService(study, problem, store, Compute(Context.of, (store, study, problem))))
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://localhost") as client:
        here = (await client.post("/start")).headers["location"]
        await client.get(here)  # so that everything is imported
        return {
            "answer": await walk.of(client.post(f"{here}/answer", data={"turn": "1", "best": "1"})),
            "page": await walk.of(client.get(here)),
            "page from the cache": await walk.of(client.get(here)),
        }


def main() -> None:
    """Print the files of each request."""
    for request, files in asyncio.run(request_walks(sys.argv[1] if len(sys.argv) > 1 else "coffee")).items():
        print(f"{request}: {len(server_files(files))} files of the server, {len(files)} in all")
        print("".join(f"  {file}\n" for file in files))


if __name__ == "__main__":
    main()
