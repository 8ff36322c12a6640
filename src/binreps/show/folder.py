"""An analysis as files: the report, everyone's score, the decision table and the summary."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from binreps.errors import BinrepsWarning, OptionError
from binreps.run.analysis import Analysis
from binreps.run.save import write_json
from binreps.show.report import LISTED, report
from binreps.show.summary import summary
from binreps.table import Table
from binreps.tables.files import check_target, open_files, replacing, write_table
from binreps.tables.join import ADDED, score_file


def write_folder(
    analysis: Analysis, folder: str | Path, *, parquet: bool = False, memory: str | None = None
) -> list[Path]:
    """Write report.html, scores.csv (or .parquet), decision_table.csv and summary.json into a folder.

    Each file appears whole or not at all, and replaces one of the same name.

    Parameters
    ----------
    analysis : Analysis
    folder : str or path
        Made if it is not there.
    parquet : bool
        Whether the scores are written as Parquet instead of CSV.
    memory : str, optional
        The most memory to use, such as "4GB".

    Returns
    -------
    list of pathlib.Path
    """
    out = Path(folder)
    if out.exists() and not out.is_dir():
        raise OptionError(f"the folder must not be a file, got {out}")
    out.mkdir(parents=True, exist_ok=True)
    scores = out / ("scores.parquet" if parquet else "scores.csv")
    check_target(scores, map(Path, analysis.source.paths))
    write_scores(analysis, scores, memory=memory)
    files = [out / "report.html", scores, out / "decision_table.csv", out / "summary.json"]
    write_table(decisions(analysis), files[2])
    write_json(summary(analysis), files[3])
    page = report(analysis, listed(scores, _prefix(analysis), memory), scores.name)
    with replacing(files[0]) as part:
        part.write_text(page, encoding="utf-8")
    return files


def write_scores(analysis: Analysis, target: Path, *, memory: str | None = None) -> None:
    """Everyone's score and decision: from the file that was read, or cell by cell where there is none."""
    source, settings = analysis.source, analysis.settings
    if source.guess is None:
        write_table(_cells(analysis), target)
        return
    how: Any = {"loss": settings.loss, "level": settings.level, "population": source.population}
    prefix = _prefix(analysis)
    columns: Any = source.guess.columns
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", BinrepsWarning)  # the analysis has them among its notes
        score_file(list(source.paths), target, analysis.fit, memory=memory, prefix=prefix, **how, **columns)


def _prefix(analysis: Analysis) -> str:
    """A prefix for the added columns, where the file has columns of the same names."""
    guess, have = analysis.source.guess, {name.casefold() for name in analysis.source.columns}
    if guess is None or guess.kind == "long":
        return ""
    added = set(ADDED)
    own = {guess.columns.get("n"), guess.columns.get("s")} & {"n", "s"}
    return "binreps_" if (added - own) & have else ""


def decisions(analysis: Analysis) -> Table:
    """The decision tables of all populations as one."""
    return _together([(part.name, part.decisions) for part in analysis.parts])


def _cells(analysis: Analysis) -> Table:
    """Everyone, cell by cell."""
    return _together([(part.name, part.cells) for part in analysis.parts])


def _together(tables: list[tuple[Any, Table]]) -> Table:
    """Tables of the same columns below each other, with the name of each if there are several."""
    if len(tables) == 1:
        return tables[0][1]
    columns: dict[str, list[Any]] = {
        "population": [name for name, table in tables for _ in range(len(table))]
    }
    for name in tables[0][1].columns:
        columns[name] = [value for _, table in tables for value in table[name]]
    return Table(columns)


def listed(scores: Path, prefix: str = "", memory: str | None = None) -> Table | None:
    """The rows of a score file, if they are few enough for a page; what was added are numbers again."""
    with open_files(scores, [], memory=memory) as relation:
        rows = relation.limit(LISTED + 1).fetchall()
        names = relation.columns
    if len(rows) > LISTED:
        return None
    numbers = {prefix + name for name in ("score", "lower", "upper")}
    columns = {name: [row[i] for row in rows] for i, name in enumerate(names)}
    for name in numbers & columns.keys():
        columns[name] = [None if value in (None, "") else float(value) for value in columns[name]]
    return Table(columns)
