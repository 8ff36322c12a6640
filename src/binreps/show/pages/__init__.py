"""The pages that need no network: templates, one set of colours, and what fills them in safely."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment, Template

SIGNS = {"negative": "\u2212", "inconclusive": "?", "positive": "+"}
"""The sign before each answer's word."""


def page(name: str) -> Template:
    """A page by its file's name; everything that is filled in is escaped."""
    return _pages().get_template(name)


@cache
def _pages() -> Environment:
    """All pages, which may include each other."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = files("binreps.show.pages")
    loader = FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8"))
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, loader=loader)
