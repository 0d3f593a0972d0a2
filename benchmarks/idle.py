"""How long others wait while many connections are held open without sending a byte.

The server drops a connection that stays silent for four seconds, so each is opened again shortly before that.

    python benchmarks/idle.py                         900, 1,100, 2,000 and 4,000 idle connections
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

REOPENED = 3.8  # seconds
TOOL = Path(sys.executable).parent / "tradeoff"


async def idle(port: int, first: float) -> None:
    """Hold one connection open for ever, as far as the server lets that happen."""
    await asyncio.sleep(first)
    while True:
        with contextlib.suppress(OSError):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            try:
                await asyncio.sleep(REOPENED)
            finally:
                writer.close()


async def visit(port: int) -> float:
    """Return the seconds that a request over a new connection takes."""
    begun = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n".encode())
    await reader.read()
    writer.close()
    return time.perf_counter() - begun


async def measure(port: int, number: int, seconds: float) -> list[float]:
    """Return the waits of visitors who come one after the other."""
    crowd = [asyncio.create_task(idle(port, REOPENED * i / number)) for i in range(number)]
    await asyncio.sleep(2 * REOPENED)
    waits = []
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        waits.append(await visit(port))
        await asyncio.sleep(0.05)
    for task in crowd:
        task.cancel()
    await asyncio.gather(*crowd, return_exceptions=True)
    return sorted(waits)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--idle", type=int, nargs="+", default=[900, 1_100, 2_000, 4_000])
    parser.add_argument("--seconds", type=float, default=10.0, help="time that is measured for each")
    given = parser.parse_args(arguments)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with tempfile.TemporaryDirectory() as name:
        output = Path(name) / "server.txt"
        with output.open("wb") as out:
            words = [str(TOOL), "serve", "coffee", "--strategy", "paper", "--port", "0", "--no-browser"]
            process = subprocess.Popen(words, cwd=name, stdout=out, stderr=subprocess.STDOUT)
        try:
            while not (found := re.search(r"http://[^:]+:(\d+)/\s[\s\S]*Stop with", output.read_text())):
                if process.poll() is not None:
                    raise SystemExit(f"the server did not start: {output.read_text()}")
                time.sleep(0.1)
            resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 2 * max(given.idle) + 100), hard))
            print(f"{'idle connections':>16}{'requests':>10}{'p50 ms':>10}{'p95 ms':>10}{'most ms':>10}")
            for number in given.idle:
                waits = asyncio.run(measure(int(found[1]), number, given.seconds))
                p50, p95 = waits[len(waits) // 2], waits[int(0.95 * len(waits))]
                print(
                    f"{number:>16,}{len(waits):>10,}{1e3 * p50:>10.0f}{1e3 * p95:>10.0f}{1e3 * waits[-1]:>10.0f}",
                    flush=True,
                )
        finally:
            process.terminate()
            process.wait(timeout=60)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


if __name__ == "__main__":
    main()
