"""An analysis as files: the report, everyone's score, the decision table or the sources, and the summary."""

from __future__ import annotations

from pathlib import Path

from binreps.errors import OptionError
from binreps.run.analysis import Analysis, Source
from binreps.run.save import write_json
from binreps.run.scores import scored, together
from binreps.show.report import report
from binreps.show.summary import summary
from binreps.tables.write import check_target, replacing, write_table


def write_folder(
    analysis: Analysis,
    folder: str | Path,
    *,
    parquet: bool = False,
    memory: str | None = None,
    title: str = "",
    author: str = "",
) -> list[Path]:
    """Write what `Analysis.write` promises; each file appears whole or not at all."""
    sources = analysis.main.sources
    third = "decision_table.csv" if sources is None else "sources.csv"
    names = ["report.html", "scores.parquet" if parquet else "scores.csv", third, "summary.json"]
    files = _ready(folder, names, analysis.source)
    content = summary(analysis)
    with scored(analysis, memory=memory) as everyone:
        # what can fail is done before anything is written
        page = report(analysis, everyone.rows, names[1], title=title, author=author)
        everyone.write(files[1])
        table = together(analysis, "decisions") if sources is None else sources
        write_table(table, files[2], everyone.connection)
    write_json(content, files[3])
    with replacing(files[0]) as part:
        part.write_text(page, encoding="utf-8")
    return files


def _ready(folder: str | Path, names: list[str], source: Source) -> list[Path]:
    """The files in their folder, made if it is not there; none may be one that is read."""
    out = Path(folder)
    if out.exists() and not out.is_dir():
        raise OptionError(f"the folder must not be a file, got {out}")
    out.mkdir(parents=True, exist_ok=True)
    for name in names[1:3]:
        check_target(out / name, map(Path, source.paths))
    return [out / name for name in names]


def report_page(analysis: Analysis, *, title: str = "", author: str = "") -> str:
    """The report with everyone in it, if they are few."""
    with scored(analysis) as everyone:
        return report(analysis, everyone.rows, title=title, author=author)
