"""How a table was read, as JSON: what an analysis keeps, so that the next file is read exactly like it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from binreps.errors import DataError, OptionError
from binreps.run.analysis import Source
from binreps.tables.files import PathLike
from binreps.tables.opened import OpenTable
from binreps.tables.profile import alike
from binreps.tables.roles import PARTS, column_names, names_of

SCHEMA, VERSION = "binreps recipe", 1

_APART = ("known", "truth", "population")


def recipe_of(source: Source) -> dict[str, Any] | None:
    """How a source was read, as plain values; None where only counts were given.

    Examples
    --------
    >>> from binreps.run.front import analyse
    >>> from binreps.table import Table
    >>> tests = Table({"patient": ["ann", "ann", "bob"], "test": ["pos", "nd", "neg"], "age": [41, 41, 38]})
    >>> recipe = recipe_of(analyse(tests).source)
    >>> recipe["columns"], recipe["table"]
    ({'individual': 'patient', 'result': 'test'}, ['patient', 'test', 'age'])
    """
    if source.guess is None:
        return None
    columns = {**source.guess.columns, **{part: getattr(source, part) for part in _APART}}
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "kind": source.guess.kind,
        "columns": {part: _plain(value) for part, value in columns.items() if value is not None},
        "table": list(source.columns),
        "sheet": source.sheet,
        "separator": source.separator,
    }


def _plain(value: Any) -> Any:
    """Names and labels that JSON has."""
    return [_plain(each) for each in value] if isinstance(value, list | tuple) else value


def load_recipe(path: PathLike) -> dict[str, Any]:
    """The recipe in a file that `binreps read` wrote, or in the summary of an analysis, checked.

    Raises
    ------
    DataError
        If the file holds none, or one that this version cannot read.
    """
    from binreps.run.save import read_json  # with what saves every fit

    content = read_json(path)
    found = saved_recipe(content)
    if found is None:
        raise DataError(f"{path} holds no recipe; `binreps read` and `binreps analyse` write one")
    return _checked(str(path), found)


def saved_recipe(content: Any) -> Any:
    """The recipe in what a JSON file holds; None without one."""
    if isinstance(content, dict) and content.get("schema") != SCHEMA:
        return content.get("recipe")
    return content if isinstance(content, dict) else None


def _checked(where: str, recipe: Any) -> dict[str, Any]:
    """A recipe that can be used."""
    if not isinstance(recipe, dict) or recipe.get("schema") != SCHEMA:
        raise DataError(f"{where} holds no recipe that binreps wrote")
    version = recipe.get("version")
    if version != VERSION:
        raise DataError(f"{where} holds a recipe in format {version!r}; this version reads format {VERSION}")
    columns, table = recipe.get("columns"), recipe.get("table")
    if not isinstance(columns, dict) or not all(part in PARTS for part in columns):
        raise DataError(f"{where} holds a recipe without columns, or with parts that there are not")
    names = column_names(columns)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise DataError(f"{where} holds a recipe whose columns are not names")
    named = isinstance(table, list) and all(isinstance(name, str) for name in table)
    if not named or not isinstance(recipe.get("sheet"), str | None) or "kind" not in recipe:
        raise DataError(f"{where} holds a recipe that is incomplete")
    return recipe


def recipe_columns(recipe: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a recipe, which no others may be given beside."""
    named = [part for part, value in given.items() if value not in (None, [], ())]
    if named:
        option = PARTS[named[0]].option or named[0]
        raise OptionError(f"a recipe names the columns, so --{option} cannot be given with it")
    return dict(recipe["columns"])


def check_recipe(recipe: Mapping[str, Any], opened: OpenTable, used: Sequence[str]) -> None:
    """Refuse a table that differs from the one of the recipe in what is used, and name the difference."""
    have = list(opened.sample)
    gone = [name for name in used if name not in have]
    if gone:
        columns = ", ".join(map(repr, gone))
        advice = "name the columns to read it otherwise"
        raise DataError(f"{opened.name} does not match the recipe: it has no column {columns}; {advice}")
    replicates = names_of(recipe["columns"].get("replicates"))
    known = {*recipe["table"], *column_names(recipe["columns"])}
    more = [name for name in have if name not in known and alike(name, replicates)]
    if more:
        columns = ", ".join(map(repr, more))
        advice = "name the columns to read it otherwise"
        raise DataError(f"{opened.name} does not match the recipe: it also has {columns}; {advice}")


def recipe_sheet(recipe: Mapping[str, Any] | None, paths: Any) -> str | None:
    """The sheet of a recipe, where workbooks are read."""
    sheet = None if recipe is None else recipe.get("sheet")
    books = all(Path(str(path)).suffix.lower() in (".xlsx", ".xlsm") for path in names_of(paths))
    return sheet if books else None
