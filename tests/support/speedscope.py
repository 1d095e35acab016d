"""The page of speedscope, as its package on npm has it, with a file opened in chromium."""

from __future__ import annotations

import base64
from pathlib import Path

from support.chromium import Browser
from support.npm import package


def release() -> Path:
    """Return the directory of the page; skips the test without npm or a network."""
    return package("speedscope", "1.25.0") / "dist" / "release"


def show(browser: Browser, file: Path, directory: Path) -> str:
    """Open a file in the page; return the title of the page and the name of the profile.

    Args:
        browser: the browser.
        file: the profile.
        directory: of a script that the page loads, as speedscope's own command makes one.
    """
    data = base64.b64encode(file.read_bytes()).decode()
    script = directory / f"{file.name}.js"
    script.write_text(f'speedscope.loadFileFromBase64({file.name!r}, "{data}")')
    page = release() / "index.html"
    # The page is loaded anew, and not only moved to another anchor.
    browser.send("Page.navigate", url="about:blank")
    url = f"{page.resolve().as_uri()}#localProfilePath={script}"
    browser.events.clear()
    browser.send("Page.navigate", url=url)
    browser.wait_for("document.title.includes(' - speedscope')")
    text: str = browser.evaluate("document.title + '\\n' + document.body.innerText")
    return text
