"""A real Chromium for tests and screenshots: the one of the system, because Playwright's own must be downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.processes import PATIENCE
from tests.web.servers import Server

AXE = Axe()
PHONES = [{"width": 360, "height": 740}, {"width": 390, "height": 844}]

expect.set_options(timeout=1000 * PATIENCE)  # milliseconds

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--no-first-run", "--force-color-profile=srgb",
]  # fmt: skip


def executable() -> str | None:
    """Return where Chromium is, if anywhere."""
    names = (os.environ.get("CHROMIUM", ""), "chromium", "chromium-browser", "google-chrome", "chrome")
    return next((found for name in names if name and (found := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Give a running browser."""
    path = executable()
    assert path is not None, "Chromium is not installed"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=1000 * PATIENCE)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def context(browser: Browser, address: str, **given: Any) -> Iterator[BrowserContext]:
    """Give a fresh profile that waits as long as it takes."""
    made = browser.new_context(base_url=address, **given)
    made.set_default_timeout(1000 * PATIENCE)
    try:
        yield made
    finally:
        made.close()


@contextmanager
def opened(browser: Browser, server: Server, **given: Any) -> Iterator[Page]:
    """Give a page that fails on scripts' errors, on violations of its policy, and on anything asked of another host."""
    wrong: list[str] = []
    with context(browser, server.address, **given) as profile:
        page = profile.new_page()
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("request", lambda asked: None if asked.url.startswith(server.address) else wrong.append(asked.url))
        yield page
    assert not wrong, wrong


def start(page: Page) -> str:
    """Begin an interview, and return its token."""
    page.goto("/")
    page.get_by_role("button", name="Start").click()
    page.wait_for_url("**/i/*")
    return page.url.rpartition("/")[2]


def accessible(page: Page) -> None:
    """Assert that axe finds nothing to complain about."""
    found = AXE.run(page)
    assert found.violations_count == 0, found.generate_report()


def no_sideways_scroll(page: Page) -> None:
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


ANSWERING = """() => {
  const read = (one) => { // what a person sees of it
    const seen = one.cloneNode(true), parts = [...one.querySelectorAll("*")];
    [...seen.querySelectorAll("*")].forEach((part, i) => { if (parts[i].getBoundingClientRect().width < 2) part.remove(); });
    return seen.textContent.replace(/\\s+/g, " ").trim();
  };
  const place = (one) => { const box = one.getBoundingClientRect(); return [box.top, box.bottom]; };
  return {
    card: place(document.querySelector("section.compare, section.menu")),
    compared: [...document.querySelectorAll("section table tbody tr:not(.label)")].map(place),
    bar: place(document.querySelector("form.answers")),
    buttons: [...document.querySelectorAll("form.answers button")].map((one) => [
      read(one), one.ariaLabel ?? one.textContent.replace(/\\s+/g, " ").trim(), one.scrollWidth <= one.clientWidth]),
    targets: [...document.querySelectorAll("form.answers button, label.pick")].map((one) => {
      const box = one.getBoundingClientRect(); return [one.textContent, box.width, box.height, box.bottom]; }),
  };
}"""


def answerable_on_a_phone(page: Page, whole: bool = True) -> list[str]:
    """Assert that the bar hides nothing of what is compared, or of the whole card; return what its buttons say to the eye."""
    found = page.evaluate(ANSWERING)
    shown = [found["card"]] if whole else found["compared"]
    assert shown and all(top >= 0 and bottom <= found["bar"][0] for top, bottom in shown), found
    height = page.evaluate("window.innerHeight")
    for text, wide, high, bottom in found["targets"]:
        assert wide >= 44 and high >= 44 and bottom <= height, (text, wide, high, bottom)
    for seen, name, fits in found["buttons"]:
        assert fits and seen and seen in name, (seen, name)  # who says what they see presses it by voice
    no_sideways_scroll(page)
    accessible(page)
    return [seen for seen, _, _ in found["buttons"]]
