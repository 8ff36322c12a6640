"""Photographs the report and the page for the README: `python -m examples.screens` after `make test`."""

import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from tests.test_web_browser import ARGUMENTS, load_example, serving

import binreps as br

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"


def main() -> None:
    """What a window of 1100 × 820 shows of either, of the bundled example."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        raise SystemExit("Chromium is not installed")
    analysis = br.analyse(
        br.load_screening(), individual="individual", result="result", name="Rapid test screening"
    )
    with sync_playwright() as play, tempfile.TemporaryDirectory() as place, serving() as address:
        browser = play.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        window = browser.new_page(viewport={"width": 1100, "height": 820})
        report = Path(place) / "report.html"
        report.write_text(analysis.report(title="Rapid test screening"), encoding="utf-8")
        window.goto(report.as_uri())
        window.screenshot(path=FOLDER / "report.png")
        window.goto(address)
        load_example(window)
        window.screenshot(path=FOLDER / "page.png")
        browser.close()


if __name__ == "__main__":  # the page starts processes, which import this file
    main()
