"""A real browser for tests: a Chromium that is installed, or the one that TALLYBOOK_CHROMIUM names."""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from playwright.async_api import Browser, async_playwright, expect

from tests.running import free_port

_COMMANDS = ("chromium-headless-shell", "chromium", "chromium-browser")
"""The first has no windows to draw, and starts in half the time."""
CHROMIUM = os.environ.get("TALLYBOOK_CHROMIUM") or next(filter(None, map(shutil.which, _COMMANDS)), None)
"""Where it is; None: nowhere."""

_ARGUMENTS = [
    "--no-sandbox",  # tests may run as root; it sees nothing but our own pages
    "--disable-features=LocalNetworkAccessChecks",  # a page that a test makes up has no address, and may not frame ours
]


expect.set_options(timeout=60_000)  # milliseconds: a busy machine is no failure


@asynccontextmanager
async def started() -> AsyncIterator[str]:
    """Starts a browser that any number of `driven` may drive, wherever they are; the address to do so."""
    port = free_port()
    async with async_playwright() as playwright:
        arguments = [*_ARGUMENTS, f"--remote-debugging-port={port}"]
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            await browser.close()


@asynccontextmanager
async def driven(address: str) -> AsyncIterator[Browser]:
    """The browser at `address`. What was opened in it is closed at the end."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.connect_over_cdp(address)
        try:
            yield browser
        finally:
            for context in browser.contexts:
                await context.close()
            await browser.close()


@asynccontextmanager
async def opened() -> AsyncIterator[Browser]:
    """A browser for one who drives it alone."""
    async with started() as address, driven(address) as browser:
        yield browser
