"""A real Chromium for tests and screenshots: the one of the system, because Playwright's own must be downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

from tests.processes import PATIENCE

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
