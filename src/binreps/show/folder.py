"""An analysis as files: the report, everyone's score, the decision table and the summary."""

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
    analysis: Analysis, folder: str | Path, *, parquet: bool = False, memory: str | None = None
) -> list[Path]:
    """Write what `Analysis.write` promises; each file appears whole or not at all."""
    out, scores = ready_folder(folder, analysis.source, parquet=parquet)
    files = [out / "report.html", scores, out / "decision_table.csv", out / "summary.json"]
    content = summary(analysis)
    with scored(analysis, memory=memory) as everyone:
        page = report(
            analysis, everyone.rows, scores.name
        )  # what can fail is done before anything is written
        everyone.write(scores)
        write_table(together(analysis, "decisions"), files[2], everyone.connection)
    write_json(content, files[3])
    with replacing(files[0]) as part:
        part.write_text(page, encoding="utf-8")
    return files


def ready_folder(folder: str | Path, source: Source, *, parquet: bool) -> tuple[Path, Path]:
    """The folder, made if it is not there, and the file of scores, which must not be one that is read."""
    out = Path(folder)
    if out.exists() and not out.is_dir():
        raise OptionError(f"the folder must not be a file, got {out}")
    out.mkdir(parents=True, exist_ok=True)
    scores = out / ("scores.parquet" if parquet else "scores.csv")
    check_target(scores, map(Path, source.paths))
    return out, scores


def report_page(analysis: Analysis) -> str:
    """The report with everyone in it, if they are few."""
    with scored(analysis) as everyone:
        return report(analysis, everyone.rows)
