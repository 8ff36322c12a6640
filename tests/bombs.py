"""Small files that unpack to much: what an upload must never do to a server with. Used by test_bombs."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable, Mapping

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

MB = 2**20
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'


# Parquet -----------------------------------------------------------------------------------------------


def _parquet(table: pa.Table, **options: object) -> bytes:
    target = io.BytesIO()
    pyarrow.parquet.write_table(table, target, compression="zstd", **options)
    return target.getvalue()


def _same(value: object, rows: int) -> pa.Array:
    """One value, many times, as a dictionary."""
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([value]))


def _results(rows: int) -> pa.Array:
    return pa.repeat(pa.scalar(1), rows)


def _long(names: pa.Array, rows: int) -> pa.Table:
    return pa.table({"patient": names, "result": _results(rows)})


def _nested(levels: int) -> pa.Table:
    values = pa.array([1])
    for _ in range(levels):
        values = pa.StructArray.from_arrays([values], ["a"])
    return pa.table({"patient": values, "result": [1]})


def _wide(columns: int) -> pa.Table:
    return pa.table({f"test{i}": pa.array([1, 0]) for i in range(columns)})


_PARQUET: dict[str, Callable[[], bytes]] = {
    "a name of 4 MB, 1,000 rows": lambda: _parquet(_long(_same("x" * 4 * MB, 1000), 1000)),
    "a name of 1 MB, a million rows": lambda: _parquet(_long(_same("x" * MB, 10**6), 10**6)),
    "a result of 4 MB, 1,000 rows": lambda: _parquet(
        pa.table({"patient": list(range(1000)), "result": _same("y" * 4 * MB, 1000)})
    ),
    "twenty columns of 1 MB": lambda: _parquet(pa.table({f"t{i}": _same("x" * MB, 500) for i in range(20)})),
    "bytes of 4 MB, 1,000 rows": lambda: _parquet(_long(_same(b"=" * 4 * MB, 1000), 1000)),
    "twenty million rows": lambda: _parquet(pa.table({"n": pa.repeat(pa.scalar(1, pa.int8()), 2 * 10**7)})),
    "a text of 100 MB": lambda: _parquet(
        _long(pa.array(["x" * 100 * MB]), 1), use_dictionary=False, write_statistics=False
    ),
    "lists of a million": lambda: _parquet(
        _long(
            pa.FixedSizeListArray.from_arrays(pa.repeat(pa.scalar(1, pa.int8()), 2 * 10**7), 10**6).cast(
                pa.list_(pa.int8())
            ),
            20,
        )
    ),
    "structs in structs, 200 deep": lambda: _parquet(_nested(200)),
    "5,000 columns": lambda: _parquet(_wide(5_000)),
    "a column with a name of 2 MB": lambda: _parquet(pa.table({"n" * 2 * MB: [1, 2], "s": [1, 1]})),
    "half a million names of 60 letters": lambda: _parquet(
        _long(pa.array([f"{i:060}" for i in range(500_000)]), 500_000)
    ),
}


# Arrow -------------------------------------------------------------------------------------------------


def _arrow(table: pa.Table, times: int = 1, compression: str = "zstd") -> bytes:
    target = io.BytesIO()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_file(target, table.schema, options=options) as writer:
        for _ in range(times):
            writer.write_table(table)
    return target.getvalue()


def _plain(size: int, rows: int) -> pa.Table:
    return _long(pa.array(["x" * size] * rows, pa.large_string()), rows)


_ARROW: dict[str, Callable[[], bytes]] = {
    "texts of 4 MB, zstd": lambda: _arrow(_plain(4 * MB, 50), times=20),
    "texts of 4 MB, lz4": lambda: _arrow(_plain(4 * MB, 25), times=10, compression="lz4"),
    "one batch of 300 MB": lambda: _arrow(_plain(MB, 300), times=3),
    "a dictionary of 4 MB, a million rows": lambda: _arrow(_long(_same("x" * 4 * MB, 10**6), 10**6)),
    "one run of 2^31 rows": lambda: _arrow(
        pa.table({"n": pa.RunEndEncodedArray.from_arrays(pa.array([2**31 - 1]), pa.array([1]))})
    ),
    "2^31 times nothing": lambda: _arrow(pa.table({"n": pa.nulls(2**31 - 1)})),
    "20,000 columns of Arrow": lambda: _arrow(_wide(20_000)),
    "structs in structs in Arrow": lambda: _arrow(_nested(60)),
    "numbers that compress": lambda: _arrow(
        pa.table({"n": _results(4 * 10**6), "s": _results(4 * 10**6)}), times=2
    ),
}


# Text --------------------------------------------------------------------------------------------------


def _members(head: bytes, block: bytes, times: int) -> bytes:
    """A gzip file of many members, of which all but the first are the same."""
    return gzip.compress(head) + gzip.compress(block) * times


_CSV: dict[str, Callable[[], bytes]] = {
    "3 GB of rows.gz": lambda: _members(b"patient,result\n", b"12345,1\n" * (2 * MB), 190),
    "a line of 1 GB.gz": lambda: _members(b"patient,result\n", b"x" * 16 * MB, 64),
    "a header of 1 GB.gz": lambda: _members(b"patient,", b"x" * 16 * MB, 64),
    "a field of 1 GB in quotes.gz": lambda: _members(b'patient,result\n"', b"x\n" * 8 * MB, 64),
    "gzip in gzip.gz": lambda: gzip.compress(gzip.compress(gzip.compress(b"n,s\n" + b"3,1\n" * 4 * MB))),
    "9 MB of line ends": lambda: b"n,s\n3,1\n" + b"\n" * 9 * MB,
    "9 MB of quotes": lambda: b"n,s\n" + b'"' * 9 * MB,
    "9 MB of commas": lambda: b"n,s\n" + b"," * 9 * MB,
    "60,000 columns of text": lambda: b"," * 60_000 + b"\n" + (b"1," * 60_000 + b"1\n") * 60,
    "2,000 columns, 2,300 rows": lambda: (
        b",".join(b"t%d" % i for i in range(2000)) + b"\n" + (b"1," * 1999 + b"1\n") * 2300
    ),
}


# Workbooks ---------------------------------------------------------------------------------------------


def _parts(sheet: str, strings: str | None, sheets: int) -> dict[str, str]:
    """The files of a workbook."""
    office, package = (
        "application/vnd.openxmlformats-officedocument.spreadsheetml",
        f"{_PACKAGE}/relationships",
    )
    pages = range(1, sheets + 1)
    kinds = "".join(
        f'<Override PartName="/xl/worksheets/sheet{i}.xml" ContentType="{office}.worksheet+xml"/>'
        for i in pages
    )
    links = "".join(
        f'<Relationship Id="r{i}" Type="{_OFFICE}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in pages
    )
    named = "".join(f'<sheet name="S{i}" sheetId="{i}" r:id="r{i}"/>' for i in pages)
    if strings is not None:
        kinds += f'<Override PartName="/xl/sharedStrings.xml" ContentType="{office}.sharedStrings+xml"/>'
        links += f'<Relationship Id="s" Type="{_OFFICE}/sharedStrings" Target="sharedStrings.xml"/>'
    return {
        "[Content_Types].xml": f'{_XML}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{office}.sheet.main+xml"/>{kinds}</Types>',
        "_rels/.rels": f'{_XML}<Relationships xmlns="{package}">'
        f'<Relationship Id="b" Type="{_OFFICE}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'{_XML}<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}">'
        f"<sheets>{named}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'{_XML}<Relationships xmlns="{package}">{links}</Relationships>',
        **{f"xl/worksheets/sheet{i}.xml": sheet for i in pages},
        **({} if strings is None else {"xl/sharedStrings.xml": strings}),
    }


def _zipped(parts: Mapping[str, str]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return target.getvalue()


def _sheet(rows: str, before: str = "", after: str = "", declared: str = "") -> str:
    return (
        f'{_XML}{declared}<worksheet xmlns="{_MAIN}">{before}<sheetData>{rows}</sheetData>{after}</worksheet>'
    )


def _workbook(sheet: str, strings: str | None = None, sheets: int = 1) -> bytes:
    return _zipped(_parts(sheet, strings, sheets))


_HEAD = (
    '<row r="1"><c r="A1" t="inlineStr"><is><t>n</t></is></c>'
    '<c r="B1" t="inlineStr"><is><t>s</t></is></c></row><row r="2"><c r="A2"><v>3</v></c>'
    '<c r="B2"><v>1</v></c></row>'
)
_LAUGHS = (
    '<!DOCTYPE lolz [<!ENTITY a0 "lol">'
    + "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, 10))
    + "]>"
)
_LONG_ENTITY = f'<!DOCTYPE x [<!ENTITY a "{"x" * 50_000}">]>'


def _strings(items: str, declared: str = "") -> str:
    return f'{_XML}{declared}<sst xmlns="{_MAIN}">{items}</sst>'


def _shared(rows: int) -> str:
    """A sheet of which all cells are the first shared string."""
    return _sheet("".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(1, rows + 1)))


def _far(rows: int) -> str:
    """A sheet with one cell in the last column of each row."""
    return _sheet("".join(f'<row r="{i}"><c r="XFD{i}"><v>1</v></c></row>' for i in range(1, rows + 1)))


def _lying() -> bytes:
    """A workbook that says that its sheet is short, and holds a long one."""
    sheet = _sheet(_HEAD + "<row/>" * 5 * MB)
    long, short = (size.to_bytes(4, "little") for size in (len(sheet), 1000))
    return _workbook(sheet).replace(long, short)  # in the local and in the central header


def _zips() -> bytes:
    """A workbook with zips of zips beside its sheets."""
    inner = b"\0" * 8 * MB
    for _ in range(3):
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
            for i in range(10):
                archive.writestr(f"{i}.zip", inner)
        inner = target.getvalue()
    target = io.BytesIO(_workbook(_sheet(_HEAD)))
    with zipfile.ZipFile(target, "a") as archive:
        archive.writestr("more.zip", inner)
    return target.getvalue()


_XLSX: dict[str, Callable[[], bytes]] = {
    "a sheet that claims A1:XFD1048576": lambda: _workbook(
        _sheet(_HEAD, before='<dimension ref="A1:XFD1048576"/>')
    ),
    "a string of 8 MB in 20,000 cells": lambda: _workbook(
        _shared(20_000), _strings(f"<si><t>{'x' * 8 * MB}</t></si>")
    ),
    "200 MB of shared strings": lambda: _workbook(_sheet(_HEAD), _strings("<si><t>abcd</t></si>" * 10 * MB)),
    "four million shared strings": lambda: _workbook(_sheet(_HEAD), _strings("<si><t>a</t></si>" * 4 * MB)),
    "laughs in the sheet": lambda: _workbook(
        _sheet('<row r="1"><c r="A1" t="inlineStr"><is><t>&a9;</t></is></c></row>', declared=_LAUGHS)
    ),
    "laughs in the strings": lambda: _workbook(_shared(3), _strings("<si><t>&a9;</t></si>", _LAUGHS)),
    "a long entity, often": lambda: _workbook(
        _shared(3), _strings(f"<si><t>{'&a;' * 50_000}</t></si>", _LONG_ENTITY)
    ),
    "5,000 rows to the last column": lambda: _workbook(_far(5_000)),
    "a cell in the last row": lambda: _workbook(
        _sheet(_HEAD + '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>')
    ),
    "rows without cells": lambda: _workbook(_sheet(_HEAD + "<row/>" * MB)),
    "a sheet that says it is short": _lying,
    "zips of zips": _zips,
    "50,000 levels": lambda: _workbook(_sheet("<row>" * 50_000 + "</row>" * 50_000)),
    "600,000 merged cells": lambda: _workbook(
        _sheet(_HEAD, after="<mergeCells>" + '<mergeCell ref="A1:B1"/>' * 600_000 + "</mergeCells>")
    ),
    "1,000 sheets": lambda: _workbook(_sheet(_HEAD), sheets=1000),
    "20,000 members": lambda: _zipped(
        {**_parts(_sheet(_HEAD), None, 1), **{f"xl/x{i}.xml": "" for i in range(20_000)}}
    ),
}


BOMBS: dict[str, tuple[str, Callable[[], bytes]]] = {
    **{name: ("bomb.parquet", make) for name, make in _PARQUET.items()},
    **{name: ("bomb.arrow", make) for name, make in _ARROW.items()},
    **{name: ("bomb.csv.gz" if name.endswith(".gz") else "bomb.csv", make) for name, make in _CSV.items()},
    **{name: ("bomb.xlsx", make) for name, make in _XLSX.items()},
}
"""By what they hold: the name of the file, and how its bytes are made."""
