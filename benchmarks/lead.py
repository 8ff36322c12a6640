"""What the page begins with: one picture and ten lines, all from the figures that stand below them.

A line or a dot whose figures were not measured is left out. Every line names the families it comes from:
`make bench ARGS="--only FAMILY"` measures them again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.report import number, power

Kept = Mapping[str, Mapping[str, Any]]  # families as JSON holds them

PICTURE = Path("pictures") / "benchmarks.svg"

DOTS = {
    "exact fit, N = 200: nutpie's sampling, processor": "posterior, N = 200: the same on the processor",
    "exact fit, N = 10⁶: nutpie's sampling, processor": "posterior, N = 10⁶: the same on the processor",
    "the same with 4,000 draws, N = 10⁶": "posterior, N = 10⁶: to fit with draws",
    "time to an error of 10⁻³, N = 10⁶: nutpie": "posterior, N = 10⁶: time to an error of 1e-3",
    "from a cold start: PyMC compiled": "start-up, exact fit: PyMC compiled to ours",
    "mode, N = 10³: one start of L-BFGS": "point, N = 10³: SciPy, cells to fit_map",
    "counting 10⁷ rows: DuckDB by hand, processor": (
        "data, 10⁷ rows, DuckDB: by hand to counts on the processor"
    ),
    "scores of 10⁶ rows: crowd-kit's majority": "data, 10⁶ rows, crowd-kit: majority vote to scores",
    "readers, log loss on rte: the best peer": "sources, rte: log loss of the best peer to ours",
    "readers, log loss, independent: the best peer": (
        "sources, 10⁵ readings: log loss of the best peer to ours"
    ),
    "readers, time on rte: Dawid–Skene": "sources, rte: time of Dawid–Skene to ours",
    "covariates, N = 10⁴: nutpie's sampling": "N = 10⁴, d = 10: times the peer's sampling time",
    "covariates, log loss: StepMix": "covariates, N = 10⁴, d = 10: log loss of StepMix to ours",
    "width with 5 % known: PPI++": "gold, 5% known: the peer's width over ours",
}
"""What the picture shows, and the ratio it takes."""


def lead(kept: Kept) -> str:
    """The picture and the lines, as Markdown; nothing where nothing was measured."""
    found = [line for line in (make(kept) for make in LINES) if line]
    if not found:
        return ""
    listed = "\n".join(f"{place}. {line}" for place, line in enumerate(found, start=1))
    return f"![How many times better than each peer]({PICTURE.as_posix()})\n\n{listed}"


def draw(kept: Kept, target: Path) -> None:
    """The picture: peers' figures over ours, better to the right of 1; none if there is nothing to show."""
    ratios = all_ratios(kept)
    rows = [{"what": what, "times": ratios[name]} for what, name in DOTS.items() if name in ratios]
    if not rows:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(_svg(rows), encoding="utf-8")


def _svg(rows: list[dict[str, Any]]) -> str:
    """A row for each peer, a line from 1 to the ratio."""
    from binreps.show.grammar import View, field
    from binreps.show.marks import layered
    from binreps.show.theme import DECISION_COLOURS, themed, to_svg

    better = {
        "ours is better": DECISION_COLOURS["negative"],
        "the peer is better": DECISION_COLOURS["positive"],
    }
    values = [
        {
            **row,
            "one": 1,
            "right": max(row["times"], 1),
            "who": list(better)[row["times"] < 1],
            "label": f"{times(row['times'])} ×",
        }
        for row in rows
    ]
    scale = {"domain": list(better), "range": list(better.values())}
    title = "the peer's figure over ours (log scale)"
    base = View(data={"values": values}).encode(
        x=field("times", "quantitative", scale={"type": "log"}, title=title),
        y=field("what", "nominal", sort=[row["what"] for row in rows], title=None, axis={"labelLimit": 360}),
        color=field("who", "nominal", scale=scale, title=None),
    )
    bars = base.mark("bar", height=9).encode(x2=field("one"))
    labels = base.mark("text", align="left", dx=6).encode(
        x=field("right", "quantitative"), text=field("label", "nominal")
    )
    return to_svg(themed(layered(bars, labels, width=430, height=22 * len(values))))


# Lines -----------------------------------------------------------------------------------------------------


def all_ratios(kept: Kept) -> dict[str, float]:
    """Every ratio of every family, by its name."""
    return {
        name: float(ratio["value"])
        for family in kept.values()
        for section in family["sections"]
        for name, ratio in section["ratios"].items()
    }


def _between(kept: Kept, start: str, end: str) -> str:
    """The least and the largest of ratios whose names begin and end so; bold where the least is below 1."""
    found = [v for name, v in all_ratios(kept).items() if name.startswith(start) and name.endswith(end)]
    if not found:
        return ""
    low, high = min(found), max(found)
    text = times(low) if high < 1.05 * low else f"{times(low)} to {times(high)}"
    return f"**{text}**" if low < 0.995 else text


def times(value: float) -> str:
    """A ratio as people say it: millions and more by their power of ten.

    Examples
    --------
    >>> [times(value) for value in (0.64, 0.9987, 12.3, 3.6e9)]
    ['0.64', '1.0', '12', '10⁹']
    """
    if value >= 10**6:
        return power(10 ** math.floor(math.log10(value)))
    return number(float(f"{value:.2g}"))


def _rows(kept: Kept, family: str, title: str) -> list[dict[str, Any]]:
    """The rows of a section; none if it was not measured."""
    sections = kept.get(family, {}).get("sections", ())
    return next((section["rows"] for section in sections if section["title"] == title), [])


def _posterior(kept: Kept) -> str:
    sampling, error = (
        _between(kept, "posterior, ", end) for end in (": the same on the processor", ": error")
    )
    if not sampling:
        return ""
    return (
        f"nutpie's sampling takes {sampling} times the processor time of an exact fit, its compilation "
        f"apart, and its errors are {error} times ours (`posterior`)."
    )


def _draws(kept: Kept) -> str:
    times = _between(kept, "posterior, ", ": to fit with draws")
    return (
        times
        and f"With 4,000 independent draws as well it is {times} times as fast on the clock (`posterior`)."
    )


def _point(kept: Kept) -> str:
    scipy, many = (
        _between(kept, "point, N", ": SciPy, cells to fit_map"),
        _between(kept, "point, ", ": SciPy to fit_many"),
    )
    if not scipy:
        return ""
    return (
        f"For the mode of one table one start of L-BFGS takes {scipy} times our time, of many tables {many} "
        "times; below 1 it is the quicker, and on hard tables it falls short of the optimum now and then "
        "(`point`)."
    )


def _data(kept: Kept) -> str:
    counting = _between(kept, "data, 1", ": by hand to counts on the processor")
    vote, whole = (
        _between(kept, "data, 10⁶ rows, crowd-kit", f"majority vote to scores{more}")
        for more in ("", " with intervals")
    )
    if not counting:
        return ""
    beside = f", {whole} times that with intervals" if whole else ""
    return (
        f"Counting a long table by hand takes {counting} times what `count_table` takes with all its checks, "
        f"DuckDB to PyArrow; crowd-kit's majority vote takes {vote} times what scores take{beside} (`data`)."
    )


def _startup(kept: Kept) -> str:
    fit, report = (
        _between(kept, f"start-up, {what}", "PyMC compiled to ours")
        for what in ("exact fit", "binreps analyse")
    )
    if not fit:
        return ""
    return (
        f"From a cold start PyMC takes {fit} times as long to its first answer, and {report} times as long "
        "as `binreps analyse` takes to the finished report (`startup`)."
    )


def _sources(kept: Kept) -> str:
    loss, speed = (
        _between(kept, "sources, rte", end)
        for end in (": log loss of the best peer to ours", ": time of Dawid–Skene to ours")
    )
    if not loss:
        return ""
    alike = _between(kept, "sources, 10⁵", ": log loss of the best peer to ours")
    return (
        f"Readers who differ: the best peer's log loss is {loss} times ours on the published crowd rte, "
        f"and {alike} times where readings are truly independent; Dawid–Skene takes {speed} times our "
        "time, without intervals (`sources`)."
    )


def _covariates(kept: Kept) -> str:
    times = _between(kept, "N = ", ": times the peer's sampling time")
    stepmix = _between(kept, "covariates, N", ": log loss of StepMix to ours")
    if not times:
        return ""
    return (
        f"Covariates: nutpie's sampling takes {times} times as long as the fit; StepMix's log loss is "
        f"{stepmix} times ours (`covariates`)."
    )


def _gold(kept: Kept) -> str:
    held = {
        (row["studies"], row["method"]): row["holds"]
        for row in _rows(kept, "gold", "Prevalence with gold labels")
        if row["known"] == "5%"
    }
    if ("hard ones", "PPI++ on s/n") not in held:
        return ""
    width = _between(kept, "gold, 5%", "the peer's width over ours")
    hard, chosen = (
        f"{held[world, 'binreps']} of ours and {held[world, 'PPI++ on s/n']} of theirs"
        for world in ("hard ones", "known by result")
    )
    return (
        f"With 5 % of statuses known, intervals of prediction-powered inference are {width} times as wide "
        f"as ours. Where individuals are misread by all, {hard} of 90 % intervals hold the truth; where "
        f"the known were chosen by their results, {chosen} (`gold`)."
    )


def _region(kept: Kept) -> str:
    rows = _rows(kept, "region", "Region: tests that miss more than they find")
    poor = {row["region"]: row for row in rows if row["sensitivity"] == "0.3"}
    if len(poor) < 2:
        return ""
    half, wide = poor.values()
    return (
        "A test that finds three of ten: true prevalence .5, the paper's region answers "
        f"{half['estimate']}, `better_than_chance` {wide['estimate']}, in {half['processor']} and "
        f"{wide['processor']} ms (`region`)."
    )


def _scale(kept: Kept) -> str:
    rows = {row["engine"]: row for row in _rows(kept, "scale", "Scale: Spark beside DuckDB")}  # the last size
    if "Spark" not in rows:
        return ""
    duckdb, spark = rows["DuckDB"], rows["Spark"]
    tasks = ("`count_table`", "`attach` by source, written")
    took = [f"{one[task].split()[0]} s" for one in (duckdb, spark) for task in tasks]
    return (
        f"{duckdb['readings']} readings are counted in {took[0]} and scored by reader in {took[1]} by "
        f"DuckDB on this machine, in {took[2]} and {took[3]} by a Spark cluster of two workers on it "
        "(`scale`)."
    )


LINES: tuple[Callable[[Kept], str], ...] = (
    _posterior,
    _draws,
    _point,
    _data,
    _startup,
    _sources,
    _covariates,
    _gold,
    _region,
    _scale,
)
