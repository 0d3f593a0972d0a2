"""Take the screenshots that the docs show: the real pages and terminals, with simulated people answering.

    python tools/screenshots.py [FOLDER] [PROBLEM ...]

writes a question and a result of each problem into FOLDER (by default docs/pictures): the page at 1280 and 390 pixels, and
the terminal at 80 columns and 24 rows; and, unless problems are named, the admin page. It needs the packages of the tests
(``pip install '.[test]'``), tmux, and Chromium (Debian: ``apt-get install chromium tmux``); another browser is named by
the variable CHROMIUM. Nothing leaves this machine.

Links are drawn by chance, and with them which option stands on the left: pictures differ from run to run in that.
"""

from __future__ import annotations

import argparse
import io
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the tests' browser and server are used here, too

from PIL import Image  # noqa: E402
from playwright.sync_api import Browser  # noqa: E402
from rich.console import Console  # noqa: E402
from rich.terminal_theme import DEFAULT_TERMINAL_THEME  # noqa: E402
from rich.text import Text  # noqa: E402
from tests.web.browsers import chromium  # noqa: E402
from tests.web.servers import TOOL, Server  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
DATA = ROOT / "docs" / "how-to" / "data"
SCREENS = {"page": (1280, 900), "phone": (390, 844)}  # pixels; what is further down is not in the picture
COLUMNS, ROWS = 80, 24  # of a terminal
COLOURS = 64  # of a picture: there are few, and most of the bytes are saved
LARGEST = 100_000  # bytes of a picture
TOWN = ["--objectives", "length:min,travel_time:min,climb:min", "--with", "origin=A1", "--with", "destination=E5"]
PROBLEMS = {
    "commute": (["commute"], "time=3,money=2,comfort=1,late=2,danger=0.5"),
    "portfolio": (["portfolio"], "gain=3,losses=2,liquidity=1,fees=1"),
    "vacuum": (["vacuum"], "dirt=3,energy=1,noise=2,mishaps=2"),
    "coffee": (["coffee"], "body=1,aroma=3,crema=1,sweetness=2,price=2"),
    "town": ([str(DATA / "town.graphml"), *TOWN], "length=1,travel_time=3,climb=2"),
}
ANSWERS = 2  # before the question that is shown

State = dict[str, Any]
Person = Callable[[State], State | str]  # what they send in reply to a question


def values(weights: list[float]) -> Person:
    """Return a respondent who answers by the worth of the gains, and does not notice small differences."""

    def worth(option: State) -> float:
        return float(sum(w * g for w, g in zip(weights, option["gains"], strict=True)))

    def reply(question: State) -> State | str:
        worths = [worth(option) for option in question["options"]]
        order = sorted(range(len(worths)), key=worths.__getitem__)
        if worths[order[-1]] - worths[order[0]] <= 0.02:
            return "equal"
        worst = {"worst": order[0] + 1} if question["asks"] == "best-worst" else {}
        return {"best": order[-1] + 1, **worst}

    return reply


def careless(question: State) -> State | str:
    """Answer without looking: always the same places of the screen."""
    return {"best": 1, "worst": 2} if question["asks"] == "best-worst" else {"best": 1}


def interviewed(server: Server, person: Person, most: int | None = None, token: str = "") -> str:
    """Return the token of somebody who has answered so many questions, or all there are."""
    with server.client() as client:
        if not token:
            state = client.post("/api/interviews").raise_for_status().json()
            token = state["id"]
        else:
            state = client.get(f"/api/interviews/{token}/question").raise_for_status().json()
        while not state["finished"] and (most is None or state["answered"] < most):
            sent = {"turn": state["turn"], "reply": person(state["question"])}
            state = client.post(f"/api/interviews/{token}/answers", json=sent).raise_for_status().json()
    return token


def taken(browser: Browser, address: str, path: Path, size: tuple[int, int], content: str = "") -> None:
    """Take a picture of what a window of this size shows of a page, or of this content."""
    width, height = size
    page = browser.new_page(viewport={"width": width, "height": height}, color_scheme="light")
    if content:
        page.set_content(content)
    else:
        page.goto(address)
        page.wait_for_load_state("networkidle")
    page.evaluate("document.activeElement && document.activeElement.blur()")  # no frame around what has the focus
    shot = page.locator("pre").screenshot() if content else page.screenshot()
    page.close()
    with Image.open(io.BytesIO(shot)) as picture:
        small = picture.convert("RGB").quantize(COLOURS, kmeans=1, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    print(f"{path.name}: {small.width} x {small.height}, {path.stat().st_size / 1000:.0f} KB", flush=True)
    if path.stat().st_size > LARGEST:
        raise SystemExit(f"{path} has more than {LARGEST} bytes, which are kept with the docs")


def pages(browser: Browser, folder: Path, work: Path, name: str) -> None:
    """Take the pictures of a question and a result in the browser."""
    words, weights = PROBLEMS[name]
    person = values([float(part.partition("=")[2]) for part in weights.split(",")])
    with Server(work, "serve", *words, "--store", f"sqlite:///{work / name}.db") as server:
        token = interviewed(server, person, most=ANSWERS)
        for screen, size in SCREENS.items():
            taken(browser, f"{server.address}/i/{token}", folder / f"{screen}-{name}-question.png", size)
        interviewed(server, person, token=token)
        for screen, size in SCREENS.items():
            taken(browser, f"{server.address}/i/{token}/result", folder / f"{screen}-{name}-result.png", size)


@contextmanager
def terminal(command: list[str], work: Path) -> Iterator[Callable[..., str]]:
    """Give a function that presses keys in a real terminal, waits for a text, and returns what is on the screen."""
    tmux = ["tmux", "-L", f"screens-{time.monotonic_ns()}"]
    size = ["-x", str(COLUMNS), "-y", str(ROWS)]
    started = f"{shlex.join(command)}; cat"
    subprocess.run([*tmux, "-f", "/dev/null", "new-session", "-d", *size, started], check=True, cwd=work)

    def screen(*keys: str, until: str) -> str:
        for key in keys:
            subprocess.run([*tmux, "send-keys", key], check=True)
        limit = time.monotonic() + 120
        while True:
            done = subprocess.run([*tmux, "capture-pane", "-e", "-p"], check=True, capture_output=True, text=True)
            if until in Text.from_ansi(done.stdout).plain:
                return done.stdout
            if time.monotonic() > limit:
                raise SystemExit(f"{until!r} is not on the screen:\n{done.stdout}")
            time.sleep(0.2)

    try:
        yield screen
    finally:
        subprocess.run([*tmux, "kill-server"], check=False)


def drawn(browser: Browser, screen: str, path: Path) -> None:
    """Take a picture of a terminal's screen."""
    out = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    out.print(Text.from_ansi(screen.rstrip("\n")), soft_wrap=True)  # all at once: a style may go on in the next line
    written = out.export_html(inline_styles=True, theme=DEFAULT_TERMINAL_THEME, code_format="<pre>{code}</pre>")
    style = (
        "pre { font: 14px/18px 'DejaVu Sans Mono', monospace; width: 80ch; height: 432px; padding: 8px; margin: 0; }"
    )
    taken(browser, "", path, (900, 600), f"<meta charset=utf-8><style>{style}</style>{written}")


def terminals(browser: Browser, folder: Path, work: Path, name: str) -> None:
    """Take the pictures of a question and a result in the terminal."""
    words, weights = PROBLEMS[name]
    with terminal([str(TOOL), "ask", *words], work) as screen:
        screen(until="any key to begin")
        shown = screen("Space", until="q quit")
        for number, key in enumerate("ab", start=2):
            if "1-4 the best" in Text.from_ansi(shown).plain:
                screen("1", until="Which is worst?")
                key = "2"
            screen(key, until=f"Question {number}")
            shown = screen(until="q quit")
        drawn(browser, shown, folder / f"terminal-{name}-question.png")
    log = work / f"{name}.jsonl"
    subprocess.run([str(TOOL), "ask", *words, "--simulate", weights, "--log", str(log)], capture_output=True, cwd=work)
    with terminal([str(TOOL), "ask", *words, "--resume", str(log)], work) as screen:
        drawn(browser, screen(until="any other key: end"), folder / f"terminal-{name}-result.png")


def overview(browser: Browser, folder: Path, work: Path) -> None:
    """Take the picture that a researcher sees: some have finished, some are at it, one did not look."""
    store = f"sqlite:///{work / 'study.db'}"
    words = ["study", "create", "beans", "coffee", "--participants", "2", "--store", store]
    subprocess.run([str(TOOL), *words], check=True, cwd=work, capture_output=True)
    with Server(work, "study", "serve", "beans", "--store", store) as server:
        for weights in ([3.0, 1.0, 1.0, 2.0, 1.0], [1.0, 1.0, 4.0, 1.0, 1.0], [1.0, 2.0, 1.0, 1.0, 3.0]):
            interviewed(server, values(weights))
        interviewed(server, careless)
        interviewed(server, values([1.0] * 5), most=3)
        taken(browser, f"{server.address}{server.admin}", folder / "admin.png", SCREENS["page"])


def main() -> None:
    """Take all pictures."""
    reader = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    reader.add_argument("folder", nargs="?", type=Path, default=PICTURES, help="where to write the pictures")
    reader.add_argument("problems", nargs="*", metavar="problem", help=f"some of {', '.join(PROBLEMS)}; by default all")
    given = reader.parse_args()
    if unknown := set(given.problems) - set(PROBLEMS):
        reader.error(f"there is no problem {min(unknown)!r}; there are {', '.join(PROBLEMS)}")
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, chromium() as browser:
        for name in given.problems or PROBLEMS:
            pages(browser, given.folder, Path(work), name)
            terminals(browser, given.folder, Path(work), name)
        if not given.problems:
            overview(browser, given.folder, Path(work))


if __name__ == "__main__":
    main()
