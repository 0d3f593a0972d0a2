"""Run the console blocks of a page of the docs, and write what the commands print under them.

    python tools/record.py docs/how-to/decide.md

Each ``$ tradeoff ...`` line is run in a folder that holds the files of docs/how-to/data, at 100 columns, as the tests of the
docs run it. What it printed before is replaced, unless that is only "...". Commands of one page see each other's files.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "how-to" / "data"
MORE = "...\n"


def printed(command: str, folder: Path) -> str:
    """Return what a command prints on stdout."""
    words = shlex.split(command, comments=True)
    words[0] = str(Path(sys.executable).parent / words[0])
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "HOME": str(folder)}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return "".join(f"{line.rstrip()}\n" for line in done.stdout.strip("\n").splitlines())


def recorded(page: str, folder: Path) -> str:
    """Return a page with the output of all its commands."""

    def block(found: re.Match[str]) -> str:
        parts = [part.partition("\n") for part in f"\n{found[1]}".split("\n$ ")[1:]]
        shown = [(command, printed(command, folder), before.strip() == "...") for command, _, before in parts]
        return "```console\n" + "".join(f"$ {one}\n{MORE if short else text}" for one, text, short in shown) + "```"

    return re.sub(r"(?ms)^```console\n(.*?)^```", block, page)


def main() -> None:
    """Rewrite the pages that are named."""
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            shutil.copytree(DATA, folder, dirs_exist_ok=True)
            path = Path(name)
            path.write_text(recorded(path.read_text(), Path(folder)))


if __name__ == "__main__":
    main()
