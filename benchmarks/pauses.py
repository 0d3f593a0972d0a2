"""How long garbage collections stop the server while many sessions are live.

The real server runs with a stopwatch on its collector; people begin and answer, each with answers of their own.

    python benchmarks/pauses.py                       1,200 live sessions of commute, 8 answers each
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import httpx

WATCHED = """
import gc, sys, time
begun = [0.0]
out = open(sys.argv.pop(1), "w", buffering=1)

def watch(phase, info):
    if phase == "start":
        begun[0] = time.perf_counter()
    else:
        out.write(f"{info['generation']} {time.perf_counter() - begun[0]}\\n")

gc.callbacks.append(watch)
from tradeoff.apps.cli.main import main
main()
"""


async def crowd(address: str, people: int, answers: int, at_once: int) -> int:
    """Let everybody begin and answer; return how many answers were taken."""
    given = 0
    free = asyncio.Semaphore(at_once)

    async def person(client: httpx.AsyncClient, seed: int) -> None:
        nonlocal given
        rng = random.Random(seed)
        async with free:
            state = (await client.post("/api/interviews")).raise_for_status().json()
            here = f"/api/interviews/{state['id']}"
            for _ in range(answers):
                if state["finished"]:
                    break
                sent = {"turn": state["turn"], "reply": rng.choice([{"best": 1}, {"best": 2}, "equal"])}
                state = (await client.post(f"{here}/answers", json=sent)).raise_for_status().json()
                given += 1

    async with httpx.AsyncClient(base_url=address, timeout=120) as client:
        await asyncio.gather(*(person(client, seed) for seed in range(people)))
    return given


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the benchmark and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", nargs="?", default="commute")
    parser.add_argument("--people", type=int, default=1_200)
    parser.add_argument("--answers", type=int, default=8)
    parser.add_argument("--at-once", type=int, default=8, help="people who answer at the same time")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        output, pauses = folder / "server.txt", folder / "pauses.txt"
        words = [sys.executable, "-c", WATCHED, str(pauses), "serve", given.problem, "--questions", "pairs"]
        words += ["--port", "0", "--no-browser"]
        with output.open("wb") as out:
            process = subprocess.Popen(words, cwd=folder, stdout=out, stderr=subprocess.STDOUT)
        try:
            while not (found := re.search(r"(http://\S+?)/\s[\s\S]*Stop with", output.read_text())):
                if process.poll() is not None:
                    raise SystemExit(f"the server did not start: {output.read_text()}")
                time.sleep(0.1)
            before = len(pauses.read_text().splitlines())
            begun = time.perf_counter()
            answered = asyncio.run(crowd(found[1], given.people, given.answers, given.at_once))
            seconds = time.perf_counter() - begun
            status = Path(f"/proc/{process.pid}/status").read_text()
            memory = re.search(r"VmRSS:\s+(\d+) kB", status)
            lines = [line.split() for line in pauses.read_text().splitlines()[before:]]
        finally:
            process.terminate()
            process.wait(timeout=60)
    print(f"{given.people:,} live sessions of {given.problem}, {answered:,} answers in {seconds:.0f} s, "
          f"{int(memory[1]) >> 10 if memory else 0} MB")  # fmt: skip
    print(f"{'collections':<14}{'number':>8}{'longest ms':>12}{'together ms':>13}")
    for generation in "012":
        took = [float(length) for number, length in lines if number == generation]
        print(f"generation {generation}  {len(took):>9,}{1e3 * max(took, default=0):>12.1f}{1e3 * sum(took):>13.0f}")


if __name__ == "__main__":
    main()
