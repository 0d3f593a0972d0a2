"""Run the console snippets of the documentation again and write down what they print now.

    python tools/update_snippets.py docs/how-to/decide.md ...

A snippet that leaves lines out ("...") is reported if it has changed; shorten it by hand.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs" / "how-to" / "data"
TOOL = Path(sys.executable).parent / "tradeoff"


def printed(command: str, folder: Path) -> list[str]:
    """Return the lines that a command prints on a terminal of 100 columns."""
    environment = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "HOME": str(folder)}
    words = [str(TOOL), *shlex.split(command, comments=True)[1:]]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{command}\n{done.stderr}")
    return [line.rstrip() for line in done.stdout.splitlines()]


def updated(page: Path) -> str:
    """Return the text of a page with the output of its commands as it is now."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(DATA, folder, dirs_exist_ok=True)

        def block(match: re.Match[str]) -> str:
            parts = []
            for part in match[1].split("$ ")[1:]:
                command, *shown = part.splitlines()
                if command.split()[0] == "tradeoff":
                    lines = printed(command, folder)
                    if "..." not in (line.strip() for line in shown):
                        shown = lines if any(shown) else shown
                    elif not all(line in lines for line in shown if line.strip() not in ("", "...")):
                        print(f"{page}: {command}: shorten by hand:\n" + "\n".join(lines))
                parts.append("\n".join([f"$ {command}", *shown]).strip("\n") + "\n")
            return f"```console\n{''.join(parts)}```"

        return re.sub(r"^```console\n(.*?)^```", block, page.read_text(), flags=re.MULTILINE | re.DOTALL)


if __name__ == "__main__":
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("pages", nargs="+", type=Path, metavar="PAGE", help="a page of the documentation")
    for path in reader.parse_args().pages:
        path.write_text(updated(path))
