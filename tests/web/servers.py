"""The real server in its own process, to be asked, interrupted and killed; and the application without a server."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

import httpx

from tests.processes import PATIENCE, Child, run, until

TOOL = Path(sys.executable).parent / "tradeoff"


class Server:
    """``tradeoff serve`` (or any other words) running on a port of its own."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.folder = folder
        self.output = folder / f"server-{time.monotonic_ns()}.txt"
        with self.output.open("wb") as out:
            self.process = Child(
                [str(TOOL), *words, "--no-browser", *([] if "--port" in words else ["--port", "0"])],
                stdout=out, stderr=subprocess.STDOUT, cwd=folder,
            )  # fmt: skip
        try:
            self.address = self._address()
        except BaseException:
            self.process.end()
            raise

    def _address(self) -> str:
        until(lambda: "Stop with" in self.output.read_text() or self.process.poll() is not None, "a server's start")
        found = re.search(r"(http://\S+?)/\s", self.output.read_text())
        assert found is not None, f"the server did not start: {self.output.read_text()}"
        return found.group(1)

    @property
    def admin(self) -> str:
        """The path of the admin page: printed at the first start, and by a command that later starts name."""
        said = self.output.read_text()
        if found := re.search(r"/admin/\S+", said):
            return found.group()
        command = re.search(r"address of the admin page: tradeoff (.*)", said)
        assert command is not None
        words = [str(TOOL), *shlex.split(command.group(1))]
        return run(words, cwd=self.folder, check=True).stdout.strip()

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def client(self, **given: Any) -> httpx.Client:
        return httpx.Client(base_url=self.address, **{"timeout": PATIENCE} | given)

    def kill(self) -> None:
        """As a power cut would: nothing is closed, nothing is said."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self) -> int:
        """As Ctrl-C does."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=PATIENCE)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.process.end()


class AppClient:
    """Calls the application in this process: ``get``, ``post``, ``head``, as of an httpx.Client."""

    def __init__(self, app: Any, address: str = "127.0.0.1") -> None:
        self.app, self.address = app, address

    def __getattr__(self, method: str) -> Any:
        def call(path: str, **given: Any) -> httpx.Response:
            async def go() -> httpx.Response:
                transport = httpx.ASGITransport(self.app, raise_app_exceptions=False, client=(self.address, 1))
                async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
                    return await client.request(method.upper(), path, **given)

            return asyncio.run_coroutine_threadsafe(go(), application_loop()).result(PATIENCE)

        return call


@cache
def application_loop() -> asyncio.AbstractEventLoop:
    """Return the event loop of all applications, which runs in a thread of its own."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    return loop


def begin(client: httpx.Client | AppClient) -> str:
    """Return the path of a new person's page."""
    done = client.post("/start")
    assert done.status_code == 303, done.text
    return done.headers["location"]


def turn_of(page: str) -> int:
    """Return the turn of the question on a page."""
    found = re.search(r'name="turn" value="(\d+)"', page)
    assert found is not None, page
    return int(found.group(1))


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, **more}
