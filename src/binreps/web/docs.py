"""A page that documents the API from its OpenAPI description; it needs no script and no network."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from binreps.web.requests import FileRequest

if TYPE_CHECKING:
    from jinja2 import Template


@cache
def _template() -> Template:
    """The page, with everything that is filled in escaped."""
    from jinja2 import Environment

    text = (files("binreps.web") / "docs.html").read_text(encoding="utf-8")
    return Environment(autoescape=True).from_string(text)


def docs_page(schema: dict[str, Any]) -> str:
    """The API in words."""
    form = FileRequest.model_json_schema()
    known = {**schema["components"]["schemas"], **form.pop("$defs"), "FileRequest": form}
    models = {title: model for title, model in sorted(known.items()) if model.get("description")}
    return _template().render(info=schema["info"], paths=schema["paths"], models=models, name=_name)


def _name(schema: dict[str, Any]) -> str:
    """The model that a schema refers to, if it does."""
    return str(schema.get("$ref", "")).rpartition("/")[2]
