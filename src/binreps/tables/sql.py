"""A little SQL: names, values, and small tables on the user's own connection."""

from __future__ import annotations

from typing import Any


def quoted(name: str) -> str:
    """A column name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def sql_literal(value: object) -> str:
    """A value in DuckDB's SQL, to be cast."""
    return "NULL" if value is None else "'" + str(value).replace("'", "''") + "'"


def beside(relation: Any, columns: dict[str, list[Any]], kinds: dict[str, str]) -> Any:
    """A small table on the user's own connection, which only a relation made from theirs is sure to use."""
    parts = [f"unnest({_listed(values, kinds[name])}) AS {quoted(name)}" for name, values in columns.items()]
    return relation.limit(0).aggregate("count(*) AS one").project(", ".join(parts))


def _listed(values: list[Any], kind: str) -> str:
    """A list in SQL; of numbers as one text, bound at once where each literal would be on its own."""
    if kind == "VARCHAR" or not values or None in values:
        return f"[{', '.join(sql_literal(value) for value in values)}]::{kind}[]"
    return f"string_split('{','.join(map(str, values))}', ',')::{kind}[]"
