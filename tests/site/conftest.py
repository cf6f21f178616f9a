"""The built site, served on this machine, and a browser without a window."""

import functools
import http.server
import shutil
import threading
from pathlib import Path

import pytest
from selenium import webdriver

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "build/docs"
PICTURES = ROOT / "build/site"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, *arguments):
        """Called for each request."""


@pytest.fixture(scope="session")
def site():
    """The address of the site."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser():
    """Debian's Chromium. Both programs are named, so that selenium downloads none."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium")
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):  # no sandbox: for root
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture
def show(browser, site):
    """Show a page in a window of some width; returns the browser."""

    def show(page, width, height=900):
        # Not a mobile device: that would zoom out instead of overflowing.
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(f"{site}/{page}")
        return browser

    return show
