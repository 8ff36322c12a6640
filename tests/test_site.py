"""The site of `make docs`: every public name once, every page reachable, every command as documented."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
import typer

import binreps
from binreps.cli.app import app, command

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONFIG = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
NAVIGATION = re.findall(r"^ +- (?:.*: )?(\S+\.md)$", CONFIG.split("\nnav:\n")[1], re.MULTILINE)


def documented_commands() -> list[str]:
    """The lines of the pages' shell blocks that start with `binreps`."""
    pages = [page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("**/*.md"))]
    blocks = [block for page in pages for block in re.findall(r"^```sh\n(.*?)^```$", page, re.M | re.S)]
    return sorted({line for block in blocks for line in block.splitlines() if line.startswith("binreps ")})


def referenced() -> Counter[str]:
    """The names that the pages of the reference document."""
    pages = "\n".join(page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("reference/*.md")))
    return Counter(re.findall(r"^::: binreps\.(\S+)$", pages, re.MULTILINE))


def public_names() -> set[str]:
    """Every name of the top level, and those of the modules there that gather names from elsewhere."""
    gathered = {"plot": binreps.plot, "interop": binreps.interop}
    inner = {f"{module}.{name}" for module, home in gathered.items() for name in home.__all__}
    return set(binreps.__all__) - gathered.keys() | inner


def test_the_reference_has_every_public_name_once() -> None:
    assert max(referenced().values()) == 1
    assert public_names() <= referenced().keys()


@pytest.mark.parametrize("name", sorted(referenced().keys() - public_names()))
def test_other_names_of_the_reference_are_reached_through_their_module(name: str) -> None:
    module, _, last = f"binreps.{name}".rpartition(".")
    assert getattr(import_module(module), last).__module__ == module


def test_the_top_level_stays_small() -> None:
    assert len(binreps.__all__) <= 55


def test_the_navigation_leads_to_every_page_once() -> None:
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.glob("**/*.md")]
    assert sorted(NAVIGATION) == sorted(pages), "mkdocs.yml lists the pages of docs/"


def test_the_files_that_the_architecture_names_exist() -> None:
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    for name in re.findall(r"`([\w/]+/[\w.]*)`", page):
        assert (ROOT / name).exists() or (ROOT / "src" / "binreps" / name).exists(), name


def test_the_site_asks_nothing_of_other_hosts() -> None:
    assert re.search(r"^  font: false$", CONFIG, re.MULTILINE)
    assert "http" not in CONFIG
    for page in DOCS.glob("**/*.md"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r"!\[[^]]*\]\(https?:|<(script|link|img|iframe)\b[^>]*https?:", text), page.name


@pytest.mark.parametrize("line", documented_commands())
def test_documented_commands_and_their_options_exist(line: str) -> None:
    _, *words = shlex.split(line)
    program = typer.main.get_command(app) if words[0].startswith("--") else command(words[0])
    known = {name for option in program.params for name in option.opts}
    assert {word for word in words if word.startswith("--")} <= known
