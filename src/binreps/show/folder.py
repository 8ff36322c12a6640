"""An analysis as files: the report, everyone's score, the decision table or the sources, and the summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from binreps.errors import OptionError
from binreps.run.analysis import Analysis, Source
from binreps.run.save import write_json
from binreps.run.scores import scored, together
from binreps.show.pen import Pen
from binreps.show.report import begin, report
from binreps.show.summary import summary
from binreps.tables.write import replacing_all, write_table


def write_folder(
    analysis: Analysis,
    folder: str | Path,
    *,
    parquet: bool = False,
    memory: str | None = None,
    title: str = "",
    author: str = "",
    pen: Pen | None = None,
) -> list[Path]:
    """Write what `Analysis.write` promises; all its files appear, or none does. A pen draws meanwhile."""
    sources = analysis.main.sources
    third = "decision_table.csv" if sources is None else "sources.csv"
    names = ["report.html", "scores.parquet" if parquet else "scores.csv", third, "summary.json"]
    with _new_files(folder, names, analysis.source) as files:
        drawings = None if pen is None else begin(analysis, pen.draw)
        with scored(analysis, memory=memory) as everyone:
            everyone.write(files[1])
            table = together(analysis, "decisions") if sources is None else sources
            write_table(table, files[2], everyone.connection)
            write_json(summary(analysis), files[3])
            page = report(analysis, everyone.rows, names[1], title=title, author=author, drawings=drawings)
        files[0].write_text(page, encoding="utf-8")
    return [Path(folder, name) for name in names]


@contextmanager
def _new_files(folder: str | Path, names: Sequence[str], source: Source) -> Iterator[list[Path]]:
    """Files that take their places in a folder together, or not at all; none may be one that is read."""
    out = Path(folder)
    if out.exists() and not out.is_dir():
        raise OptionError(f"the folder must not be a file, got {out}")
    for name in names:
        if (out / name).exists() and any((out / name).samefile(path) for path in source.paths):
            raise OptionError(f"{out / name} is read and cannot be written too; name another folder")
    with replacing_all(out) as stage:
        yield [stage / name for name in names]


def report_page(analysis: Analysis, *, title: str = "", author: str = "") -> str:
    """The report with everyone in it, if they are few."""
    with scored(analysis) as everyone:
        return report(analysis, everyone.rows, title=title, author=author)
