"""An analysis as files: the report, everyone's score, the decision table and the summary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from binreps.errors import OptionError
from binreps.run.analysis import Analysis, Source
from binreps.run.save import write_json
from binreps.run.scores import scored, together
from binreps.show.report import report
from binreps.show.summary import summary
from binreps.tables.write import replacing_all, write_table


def write_folder(
    analysis: Analysis, folder: str | Path, *, parquet: bool = False, memory: str | None = None
) -> list[Path]:
    """Write what `Analysis.write` promises; all its files appear, or none does."""
    scores = "scores.parquet" if parquet else "scores.csv"
    names = ("report.html", scores, "decision_table.csv", "summary.json")
    with new_files(folder, names, analysis.source) as files, scored(analysis, memory=memory) as everyone:
        everyone.write(files[1])
        write_table(together(analysis, "decisions"), files[2], everyone.connection)
        write_json(summary(analysis), files[3])
        files[0].write_text(report(analysis, everyone.rows, scores), encoding="utf-8")
    return [Path(folder, name) for name in names]


@contextmanager
def new_files(folder: str | Path, names: Sequence[str], source: Source) -> Iterator[list[Path]]:
    """Files that take their places in a folder together, or not at all; none may be one that is read."""
    out = Path(folder)
    if out.exists() and not out.is_dir():
        raise OptionError(f"the folder must not be a file, got {out}")
    for name in names:
        if (out / name).exists() and any((out / name).samefile(path) for path in source.paths):
            raise OptionError(f"{out / name} is read and cannot be written too; name another folder")
    with replacing_all(out) as stage:
        yield [stage / name for name in names]


def report_page(analysis: Analysis) -> str:
    """The report with everyone in it, if they are few."""
    with scored(analysis) as everyone:
        return report(analysis, everyone.rows)
