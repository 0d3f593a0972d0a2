"""Take the screenshots that the docs show: the real pages in a real browser, with simulated people answering.

    python tools/make_screenshots.py [FOLDER]

writes question-commute.png, question-vacuum.png, question-phone.png, result-commute.png and admin.png into FOLDER (by
default docs/pictures). It needs the packages of the tests (``pip install '.[test]'``) and Chromium (Debian: ``apt-get
install chromium``); another one is named by the variable CHROMIUM. Nothing leaves this machine.

Links are drawn by chance, and with them which alternative stands on the left: pictures differ from run to run in that.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # the tests' browser and server are used here, too

from PIL import Image  # noqa: E402
from playwright.sync_api import Browser, Page  # noqa: E402
from tests.web.browsers import chromium  # noqa: E402
from tests.web.servers import TOOL, Server  # noqa: E402

PICTURES = ROOT / "docs" / "pictures"
WIDE, PHONE = 1100, 360  # pixels
TALLEST, PHONE_TALLEST = 2400, 1500  # what is further down is cut off
COLOURS = 256  # of a picture: the pages have few, and half the bytes are saved
LARGEST = 250_000  # bytes of a picture
SIDES = ("first", "second")

State = dict[str, Any]
Person = Callable[[State], str]


def values(weights: list[float]) -> Person:
    """Return somebody who answers by the worth of the gains, and cannot tell small differences apart."""

    def answer(question: State) -> str:
        first, second = (sum(w * g for w, g in zip(weights, question[s]["gains"], strict=True)) for s in SIDES)
        return "same" if abs(first - second) <= 0.02 else "first" if first > second else "second"

    return answer


def careless(question: State) -> str:
    """Answer without looking: always the same side of the screen."""
    return str(question["left"])


def interviewed(server: Server, person: Person, most: int | None = None, token: str = "") -> str:
    """Return the token of somebody who has answered so many questions, or all there are."""
    with server.client() as client:
        if not token:
            state = client.post("/api/interviews").raise_for_status().json()
            token = state["id"]
        else:
            state = client.get(f"/api/interviews/{token}/question").raise_for_status().json()
        while not state["finished"] and (most is None or state["answered"] < most):
            said = {"turn": state["turn"], "answer": person(state["question"])}
            state = client.post(f"/api/interviews/{token}/answers", json=said).raise_for_status().json()
    return token


def taken(
    browser: Browser,
    address: str,
    path: Path,
    *,
    prepare: Callable[[Page], None],
    width: int = WIDE,
    tallest: int = TALLEST,
) -> None:
    """Take a picture of a page in a window that is as high as the page, so that what sticks to its end is there."""
    page = browser.new_page(viewport={"width": width, "height": 800}, device_scale_factor=1, color_scheme="light")
    page.goto(address)
    page.wait_for_load_state("networkidle")
    prepare(page)
    height = min(int(page.evaluate("scrollY + document.querySelector('main').getBoundingClientRect().bottom")), tallest)
    page.set_viewport_size({"width": width, "height": height})
    page.evaluate("document.activeElement && document.activeElement.blur()")  # no frame around what has the focus
    page.evaluate("window.scrollTo(0, 0)")
    page.screenshot(path=path)
    page.close()
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(COLOURS, kmeans=1, dither=Image.Dither.NONE)
    small.save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path.name}: {width} x {height}, {size / 1000:.0f} KB")
    if size > LARGEST:
        raise SystemExit(f"{path} has {size} bytes; at most {LARGEST} are kept with the docs")


def as_it_is(page: Page) -> None:
    """Do nothing to a page."""


def with_a_slider(page: Page) -> None:
    """Unfold what would change if something mattered more."""
    part = page.locator("details.whatif").first
    part.locator("summary").click()
    part.locator("input[type=range]").fill("1")


def questions_and_result(browser: Browser, folder: Path, work: Path) -> None:
    """Take the pictures that a participant sees."""
    hurried = values([3.0, 2.0, 1.0, 2.0, 0.5])
    with Server(work, "serve", "commute") as server:
        token = interviewed(server, hurried, most=2)
        taken(browser, f"{server.address}/i/{token}", folder / "question-commute.png", prepare=as_it_is)
        phone = folder / "question-phone.png"
        taken(browser, f"{server.address}/i/{token}", phone, width=PHONE, tallest=PHONE_TALLEST, prepare=as_it_is)
        interviewed(server, hurried, token=token)
        address = f"{server.address}/i/{token}/result"
        taken(browser, address, folder / "result-commute.png", prepare=with_a_slider)
    with Server(work, "serve", "vacuum") as server:
        objectives = len(server.client().post("/api/interviews").json()["question"]["first"]["gains"])
        token = interviewed(server, values([1.0] * objectives), most=1)
        taken(browser, f"{server.address}/i/{token}", folder / "question-vacuum.png", prepare=as_it_is)


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
        taken(browser, f"{server.address}{server.admin}", folder / "admin.png", prepare=as_it_is)


def main() -> None:
    """Take all pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work, chromium() as browser:
        questions_and_result(browser, folder, Path(work))
        overview(browser, folder, Path(work))


if __name__ == "__main__":
    main()
