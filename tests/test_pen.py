"""The pen: another process draws what this one would, and neither outlives nor stops the other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import binreps as br
from binreps.show import plot
from binreps.show.grammar import View, view_of
from binreps.show.pen import Pen, new_pen
from binreps.show.theme import to_svg

pytestmark = pytest.mark.slow


@pytest.fixture
def view() -> View:
    return view_of(plot.risks, br.Loss(inconclusive=0.2))


@pytest.fixture
def pen() -> Iterator[Pen]:
    made = new_pen()
    assert made is not None
    yield made
    made.close()


def test_a_pen_draws_what_this_process_draws(pen: Pen, view: View) -> None:
    first, second = pen.draw(view), pen.draw(view.properties(title="µ, “quoted”\n<b>"))
    assert first() == to_svg(view)
    assert second() == to_svg(view.properties(title="µ, “quoted”\n<b>"))


def test_without_its_process_the_figures_are_drawn_here(pen: Pen, view: View) -> None:
    waiting = [pen.draw(view) for _ in range(3)]
    pen._process.kill()
    assert {svg() for svg in waiting} == {to_svg(view)}


def test_a_figure_that_cannot_be_drawn_says_why_here(pen: Pen) -> None:
    with pytest.raises(ValueError, match="Vega-Lite to SVG conversion failed"):
        pen.draw(View(data={"values": []}, mark="no such mark"))()


def test_where_python_cannot_be_started_there_is_no_pen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", str(Path(__file__).parent / "no python here"))
    assert new_pen() is None
    monkeypatch.setattr(sys, "executable", "")
    assert new_pen() is None


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="nothing is killed so elsewhere")
def test_a_pen_ends_with_whoever_started_it() -> None:
    made = "from binreps.show.pen import new_pen; pen = new_pen(); print(pen._process.pid, flush=True)"
    code = f"{made}; import time; time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        number = int(run.stdout.readline())
        os.kill(number, 0)  # it is there
        run.kill()
    for _ in range(200):
        if _gone(number):
            return
        time.sleep(0.1)
    pytest.fail("the pen is still there")


def _gone(number: int) -> bool:
    """Whether a process has ended, or waits for nobody to notice it."""
    state = Path(f"/proc/{number}/stat")
    if state.parent.parent.is_dir() and state.exists():
        return state.read_text().rpartition(")")[2].split()[0] == "Z"
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    return False
