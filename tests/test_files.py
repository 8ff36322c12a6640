from __future__ import annotations

import gzip
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

from binreps.counts import CountTable
from binreps.decide.loss import Loss
from binreps.errors import BinrepsWarning, DataError, OptionError
from binreps.fits.point.simple import AverageFit, fit_average
from binreps.tables import leftovers
from binreps.tables.files import open_files
from binreps.tables.join import score_file
from binreps.tables.opened import count_table, open_table
from binreps.tables.write import replacing, replacing_all, safe_text, write_file

pytestmark = pytest.mark.filterwarnings("ignore:.* above the header of")

LOSS = Loss(inconclusive=0.2)
EXPECTED = CountTable([2, 1, 0], [1, 0, 0])
ROWS = [("007", "pos"), ("7", "neg"), ("007", "neg"), ("008", None)]
LONG: Any = {"individual": "patient", "result": "test"}


def as_text(separator: str = ",", end: str = "\n", before: str = "") -> str:
    lines = [separator.join(("patient", "test", "dose"))]
    lines += [separator.join((who, test or "", "1,5" if separator == ";" else '"1,5"')) for who, test in ROWS]
    return before + end.join(lines) + end


TEXTS = {
    "comma": as_text().encode(),
    "semicolon": as_text(";").encode(),
    "tab": as_text("\t").encode(),
    "bar": as_text("|").encode(),
    "windows": as_text(";", "\r\n", "\ufeff").encode(),
    "title": as_text(before="Study 12, visit 3\nexported 2024-02-29\n\n").encode(),
    "title and semicolons": as_text(";", "\r\n", before="\ufeffStudy 12;;\r\n").encode(),
    "zipped": gzip.compress(as_text().encode()),
    "no last line end": as_text().encode().rstrip(b"\n"),
    "words for nothing": as_text().replace("008,,", "008, NA ,").encode(),
    "blanks around names": as_text().replace("patient,test", " patient , test").encode(),
    "quotes": as_text().replace("\n7,neg", '\n"7","neg"').encode(),
    "blank lines": (as_text() + "\n\n").encode(),
    "comments": as_text().replace("008", "#8").encode(),
}


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.fixture
def fit() -> AverageFit:
    return fit_average(EXPECTED)


@pytest.mark.parametrize("kind", TEXTS)
def test_text_files_of_many_kinds(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path / ("tests.csv.gz" if kind == "zipped" else "tests.csv"), TEXTS[kind])
    assert count_table(path, **LONG) == EXPECTED


@pytest.mark.parametrize(
    "name", ["it's.csv", 'a "b".csv', "data[1]*?.csv", "é 文 ;--.csv", "x');drop.csv", "%s{}.csv"]
)
def test_any_name_will_do(tmp_path: Path, name: str, fit: AverageFit) -> None:
    folder = tmp_path / f"in {name}"
    folder.mkdir()
    path = write(folder / name, TEXTS["comma"])
    assert count_table(str(path), **LONG) == EXPECTED
    out = score_file(path, fit, folder / f"out {name}", loss=LOSS, **LONG)
    assert out.read_text().startswith("patient,n,s,score")
    assert sorted(file.name for file in folder.iterdir()) == sorted([name, out.name])


def table() -> pa.Table:
    return pa.table({"patient": [who for who, _ in ROWS], "test": [test for _, test in ROWS]})


def test_parquet_arrow_and_feather(tmp_path: Path) -> None:
    pa.parquet.write_table(table(), tmp_path / "tests.parquet")
    pa.feather.write_feather(table(), str(tmp_path / "tests.feather"))
    with pa.ipc.new_file(str(tmp_path / "tests.arrow"), table().schema) as writer:
        writer.write_table(table())
    for name in ("tests.parquet", "tests.feather", "tests.arrow"):
        assert count_table(tmp_path / name, **LONG) == EXPECTED


def test_workbooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = openpyxl.Workbook()
    for row in [("Study 12", None, None), ("patient", "test", None), *((*row, 1.5) for row in ROWS)]:
        book.active.append(row)
    path = tmp_path / "tests.xlsx"
    book.save(path)
    assert count_table(path, **LONG) == EXPECTED
    with pytest.raises(DataError, match=r"sheet 'Sheet' of .*tests.xlsx has no column 'who'"):
        count_table(path, individual="who", result="test")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    with pytest.raises(
        DataError, match=r"needs openpyxl \(pip install 'binreps\[excel\]'\); or .* CSV UTF-8"
    ):
        count_table(path, **LONG)


def test_patterns_take_files_that_are_laid_out_differently(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", b"patient,test\n007,pos\n7,neg\n")
    write(tmp_path / "b.csv", b"title\ntest;patient\nneg;007\n;008\n")
    write(tmp_path / "c.csv", gzip.compress(b"patient,test\n"))
    assert count_table(tmp_path / "*.csv", **LONG) == EXPECTED
    assert count_table([tmp_path / "a.csv", tmp_path / "[bc].csv"], **LONG) == EXPECTED
    write(tmp_path / "d.csv", b"patient,test,dose\n")
    with pytest.raises(DataError, match=r"d.csv has 'dose' that .*a.csv has not; give"):
        count_table(tmp_path / "*.csv", **LONG)


def test_counts_in_text_files(tmp_path: Path) -> None:
    path = write(tmp_path / "counts.csv", b"id;n;s;w\na;3,0;1;2\nb; 3 ;1.0;1\n")
    assert count_table(path, n="n", s="s", weight="w") == CountTable([3], [1], [3])
    path = write(tmp_path / "counts.csv", b"n,s\n3,1\n3,one\n,\n3,2\n")
    with pytest.raises(DataError, match="none missing; got n = '3', s = 'one'; n = missing, s = missing"):
        count_table(path, n="n", s="s")


LATE = b"x" * 80 + b"\n"
WRONG = {
    "there is no file": ("absent.csv", None),
    "is empty": ("empty.csv", b""),
    "is not UTF-8 text; in the spreadsheet": ("latin.csv", "patient,test\nJosé,pos\n".encode("latin-1")),
    "latin.csv is not UTF-8": (
        "latin.csv",
        as_text().encode() + b"1,,\n" * 40_000 + "José,pos,\n".encode("latin-1"),
    ),
    "utf16.csv is not UTF-8": ("utf16.csv", as_text().encode("utf-16")),
    "line 3 of .* has 4 fields where the header has 3": (
        "ragged.csv",
        b"patient,test,x\n1,pos,1\n1,neg,1,2\n",
    ),
    "line 3 of .* has 2 fields where the header has 3": ("ragged.csv", b"patient,test,x\n1,pos,1\n1,neg\n"),
    "line 2 of .* has a quotation mark": ("quote.csv", b'patient,test\n"1,pos\n2,neg\n'),
    "has two columns 'test'; rename one": ("twice.csv", b"patient,test,test\n1,pos,neg\n"),
    "has no header with a column 'test'; its first line has 'patient', 'dose'": (
        "a.csv",
        b"patient;dose\n1;2\n",
    ),
    "is not a whole gzip file": ("broken.csv.gz", gzip.compress(LATE * 99)[:40]),
    "is not a whole Parquet file": ("broken.parquet", b"PAR1 and more"),
    "is not an Arrow file": ("broken.feather", b"FEA1 and more"),
    "is not a workbook that can be read": ("broken.xlsx", b"PK and more"),
    r"old.xls cannot be read; .* Save As → CSV UTF-8": ("old.xls", b"x"),
    "data.sav cannot be read; CSV, Parquet, Arrow/Feather or .xlsx can": ("data.sav", b"x"),
    "column 'test' must hold .* got 'maybe'": ("third.csv", b"patient,test\n1,pos\n1,maybe\n"),
}


@pytest.mark.parametrize("sentence", WRONG)
def test_what_cannot_be_read_says_what_to_change(tmp_path: Path, sentence: str) -> None:
    name, content = WRONG[sentence]
    if content is not None:
        write(tmp_path / name, content)
    with pytest.raises(DataError, match=sentence) as caught:
        count_table(tmp_path / name, **LONG)
    assert "\n" not in str(caught.value)


def test_folders_patterns_and_mixtures_that_cannot_be_read(tmp_path: Path) -> None:
    write(tmp_path / "a.csv", TEXTS["comma"])
    pa.parquet.write_table(table(), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"is a folder; name the files in it, such as .*\*.parquet"):
        count_table(tmp_path, **LONG)
    with pytest.raises(DataError, match=r"no file matches .*\*.tsv"):
        count_table(tmp_path / "*.tsv", **LONG)
    with pytest.raises(DataError, match="files of one kind can be read together, got csv and parquet"):
        count_table(tmp_path / "*", **LONG)
    with pytest.raises(OptionError, match="path must name at least one file"):
        count_table([], **LONG)
    with pytest.raises(OptionError, match="memory must be a size such as '4GB', got 'much'"):
        count_table(tmp_path / "a.csv", memory="much", **LONG)


def test_scores_for_each_individual(tmp_path: Path, fit: AverageFit) -> None:
    path = write(tmp_path / "tests.csv", TEXTS["windows"])
    out = score_file(path, fit, tmp_path / "answers.csv", loss=LOSS, **LONG)
    assert out.read_text().splitlines() == [
        "patient,n,s,score,lower,upper,decision",
        "007,2,1,0.5,,,inconclusive",
        "7,1,0,0.0,,,negative",
        "008,0,0,,,,",
    ]
    assert path.read_bytes() == TEXTS["windows"]


def test_scores_for_each_replicate_leave_the_columns_as_they_are(tmp_path: Path, fit: AverageFit) -> None:
    path = write(
        tmp_path / "tests.csv", b"patient,test,day,zip\n007,pos,1/2/24,01\n7,NEG,,1.50\n007,neg,,\n008,,,x\n"
    )
    out = score_file(path, fit, tmp_path / "answers.csv.gz", loss=LOSS, per="replicate", **LONG)
    assert gzip.decompress(out.read_bytes()).decode().splitlines() == [
        "patient,test,day,zip,n,s,score,lower,upper,decision",
        "007,pos,1/2/24,01,2,1,0.5,,,inconclusive",
        "7,NEG,,1.50,1,0,0.0,,,negative",
        "007,neg,,,2,1,0.5,,,inconclusive",
        "008,,,x,0,0,,,,",
    ]


def test_rows_keep_their_order(tmp_path: Path) -> None:
    lines = [f"{i},3,{i % 2}" for i in range(150_000)]
    path = write(tmp_path / "counts.csv", "\n".join(["id,n,s", *lines]).encode())
    fit = fit_average(count_table(path, n="n", s="s"))
    out = score_file(path, fit, tmp_path / "answers.parquet", loss=LOSS, n="n", s="s")
    assert pa.parquet.read_table(out).column("id").to_pylist() == [str(i) for i in range(150_000)]


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_types_are_kept_from_files_that_have_types(tmp_path: Path, suffix: str, fit: AverageFit) -> None:
    wide = pa.table({"id": [2**62, 5], "first": [True, None], "second": [False, False]})
    path = tmp_path / f"wide.{suffix}"
    (pa.parquet.write_table if suffix == "parquet" else pa.feather.write_feather)(wide, str(path))
    out = score_file(path, fit, tmp_path / "out.parquet", loss=LOSS, replicates=["first", "second"])
    answer = pa.parquet.read_table(out)
    assert answer.select(wide.column_names).cast(wide.schema) == wide
    assert answer.schema.types[:3] == wide.schema.types
    assert answer.drop(wide.column_names).to_pydict() == {
        "n": [2, 1],
        "s": [1, 0],
        "score": [0.5, 0.0],
        "lower": [None, None],
        "upper": [None, None],
        "decision": ["inconclusive", "negative"],
    }


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("tests.csv", "is read and cannot be written too"),
        ("link.csv", "is read and cannot be written too"),
        ("folder.csv", "is a folder; name a file in it"),
        ("absent/out.csv", r"as there is no folder .*absent"),
        ("out.xlsx", r"name a file that ends in .csv, .csv.gz, .tsv or .parquet"),
    ],
)
def test_targets_that_cannot_be_written(tmp_path: Path, fit: AverageFit, target: str, sentence: str) -> None:
    path = write(tmp_path / "tests.csv", TEXTS["comma"])
    (tmp_path / "link.csv").symlink_to(path)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(OptionError, match=sentence):
        score_file(path, fit, tmp_path / target, loss=LOSS, **LONG)
    assert path.read_bytes() == TEXTS["comma"]


@pytest.mark.parametrize("problem", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_run_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fit: AverageFit, problem: type[BaseException]
) -> None:
    def interrupted(_: Any, name: str, **__: Any) -> None:
        Path(name).write_text("half a fi")
        raise problem

    path = write(tmp_path / "tests.csv", TEXTS["comma"])
    out = write(tmp_path / "answers.csv", b"older answers")
    monkeypatch.setattr(duckdb.DuckDBPyRelation, "write_csv", interrupted)
    with pytest.raises(problem):
        score_file(path, fit, out, loss=LOSS, **LONG)
    assert out.read_bytes() == b"older answers"
    assert sorted(file.name for file in tmp_path.iterdir()) == ["answers.csv", "tests.csv"]


def test_a_new_file_has_the_permissions_of_the_old_one(tmp_path: Path) -> None:
    path = write(tmp_path / "answers.csv", b"older answers")
    path.chmod(0o640)
    with replacing(path) as part:
        part.write_text("new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640


def test_more_rows_than_memory_are_spilled(tmp_path: Path) -> None:
    path = tmp_path / "big.parquet"
    connection = duckdb.connect()
    connection.sql(
        "SELECT concat('individual number ', (i * 7919) % 400000) AS who, (i % 7 = 0)::TINYINT AS test "
        "FROM range(1200000) t(i)"
    ).write_parquet(str(path))
    counts = count_table(path, individual="who", result="test", memory="70MB")
    assert counts.individuals == 400_000
    assert counts.replicates == 1_200_000
    assert counts.positives == len(range(0, 1_200_000, 7))


def test_rows_without_an_individual_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path / "tests.csv", as_text().encode() + b",,\n,pos,\n")
    with pytest.warns(
        BinrepsWarning, match="2 rows without an individual in column 'patient' dropped"
    ) as caught:
        assert count_table(path, **LONG) == EXPECTED
    assert caught[0].filename == __file__


def test_a_file_stays_closed_after_use(tmp_path: Path) -> None:
    path = write(tmp_path / "tests.csv", TEXTS["comma"])
    with open_files(path, ["patient"]) as files:
        relation = files.relation
        assert relation.columns == ["patient", "test", "dose"]
    with pytest.raises(duckdb.Error):
        relation.fetchall()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no such pipes")
def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with pytest.raises(DataError, match="is a pipe or a device"):
        count_table(pipe, n="n", s="s")


def test_a_damaged_gzip_file_is_a_sentence(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(b"".join(b"%d,%d\n" % (i, i % 7) for i in range(20_000))))
    content[40] ^= 255
    path = tmp_path / "tests.csv.gz"
    path.write_bytes(content)
    with pytest.raises(DataError, match="is not a whole gzip file"):
        count_table(path, n="n", s="s")


def test_a_column_called_star_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tests.csv"
    path.write_text("*,test\na,1\nb,0\n")
    with pytest.raises(DataError, match=r"must not be called '\*'"):
        count_table(path, individual="*", result="test")


def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    own = leftovers.marked("scores.csv")
    left = own.replace(f"-{os.getpid()}-", f"-{ended.pid}-")
    elsewhere = re.sub(r"\.[0-9a-f]{8}-", ".00000000-", left)
    for name in (own, left, elsewhere):
        (tmp_path / name).write_text("half")
    with replacing(tmp_path / "scores.csv") as part:
        part.write_text("whole")
    assert {file.name for file in tmp_path.iterdir()} == {"scores.csv", own, elsewhere}


def test_files_take_their_places_together_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "out"

    def interrupted() -> None:
        with replacing_all(out) as stage:
            (stage / "scores.csv").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert not out.exists()
    with replacing_all(out) as stage:
        for name in ("scores.csv", "report.html"):
            (stage / name).write_text("whole")
    assert sorted(file.name for file in out.iterdir()) == ["report.html", "scores.csv"]


@pytest.mark.parametrize("before", ["", " ", "\ufeff", "\u200b", "\u00a0", "\x00", "\u202e "])
@pytest.mark.parametrize("kind", ["VARCHAR", "BLOB"])
def test_no_unseen_letter_hides_a_formula(before: str, kind: str, tmp_path: Path) -> None:
    text = f"{before}=1+1"
    rows = duckdb.connect().from_arrow(pa.table({"id": [text.encode() if kind == "BLOB" else text]}))
    write_file(rows, tmp_path / "out.csv")
    written = (tmp_path / "out.csv").read_text(encoding="utf-8").splitlines()[1].strip('"')
    assert written.startswith(("'", "\\"))  # bytes that are no letters are written as \xEF…
    if kind == "VARCHAR":
        assert safe_text(text) == f"'{text}"


@pytest.mark.parametrize("ends", [b"\r\n", b"\n"])
def test_rows_that_were_added_with_other_line_ends_are_read(tmp_path: Path, ends: bytes) -> None:
    other = {b"\n": b"\r\n", b"\r\n": b"\n"}[ends]
    rows = [b"patient,test", b"ann,pos", b"ann,neg", b"bob,pos"]
    write(tmp_path / "mixed.csv", ends.join(rows[:3]) + ends + rows[3] + other)
    assert count_table(tmp_path / "mixed.csv", **LONG) == CountTable([2, 1], [1, 1])
    quoted = b'"an' + other + b'n",pos'
    write(tmp_path / "quoted.csv", ends.join([rows[0], quoted, rows[3]]) + ends + rows[3] + other)
    with open_table(tmp_path / "quoted.csv", ["patient"]) as table:
        assert f"an{other.decode()}n" in table.sample["patient"]  # data are left alone
    write(tmp_path / "mixed.csv", ends.join([*rows[:2], b"ann,neg,x"]) + ends + rows[3] + other)
    with pytest.raises(DataError, match=r"^line 3 of .*/mixed\.csv has 3 fields") as caught:
        count_table(tmp_path / "mixed.csv", **LONG)
    assert ".part" not in str(caught.value)  # the file that was named, not our copy
