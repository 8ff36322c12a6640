"""The road is one-way: a module imports only from stations before its own; `import binreps` stays light."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import binreps

SOURCE = Path(binreps.__file__).parent
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts): path
    for path in sorted(SOURCE.rglob("*.py"))
    if path != SOURCE / "__init__.py"  # the front door: the public names, from everywhere
}
BEFORE = {
    "nouns": set(),
    "tables": {"nouns"},
    "fits": {"nouns"},
    "study": {"nouns", "fits"},
    "decide": {"nouns", "fits"},
    "run": {"nouns", "tables", "fits", "decide"},
    "show": {"nouns", "tables", "fits", "decide", "run"},
    "doors": {"nouns", "tables", "fits", "study", "decide", "run", "show"},
}
DOORS = {"cli", "web", "__main__"}
HEAVY = {
    *("altair", "duckdb", "jinja2", "pandas", "polars", "pyarrow", "pymc", "pyspark", "rich", "sklearn"),
    *("scipy.optimize", "scipy.stats", "typer", "vl_convert"),
}


def station(module: str) -> str:
    """Which station of the road a module stands at; a file outside any folder is a noun, or a door."""
    first, *rest = module.split(".")
    if first in DOORS:
        return "doors"
    return first if rest else "nouns"


def imported(path: Path) -> set[str]:
    """Every module that a file imports, at its top or inside a function."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} has a relative import"
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


LATE = {("run.analysis", "show.folder")}
"""The one way back: an analysis writes itself by what shows it, which it loads when it is asked to."""


def own_imports(module: str) -> set[str]:
    """The modules of binreps that one imports, without the package's name; but for the one way back."""
    found = {name.removeprefix("binreps.") for name in imported(MODULES[module])} & MODULES.keys()
    return {name for name in found if (module, name) not in LATE}


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_only_from_stations_before_its_own(module: str) -> None:
    here = station(module)
    assert here in BEFORE, f"{module} is at no known station"
    wrong = {name for name in own_imports(module) if station(name) not in BEFORE[here] | {here}}
    assert not wrong, f"{module} ({here}) must not import {wrong}"
    assert "binreps" not in imported(MODULES[module]), f"{module} must import from where a name lives"


def drawn_tree() -> set[str]:
    """The files and folders, with a slash, of the tree that docs/architecture.md draws."""
    page = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text(encoding="utf-8")
    lines = page.split("src/binreps/\n")[1].split("```")[0].splitlines()
    found, folders = set(), [""]
    for line in lines:
        mark, name = re.match(r"([│├└─ ]+)(\S+)", line).groups()
        depth = len(mark) // 4
        found.add(folders[depth - 1] + name)
        folders[depth:] = [folders[depth - 1] + name]
    return found


def test_the_tree_that_is_drawn_is_the_tree_on_disk() -> None:
    folders = {path.relative_to(SOURCE).as_posix() + "/" for path in SOURCE.rglob("*") if path.is_dir()}
    files = {path.name for path in SOURCE.glob("*.py")}
    assert drawn_tree() == {name for name in folders if "__pycache__" not in name} | files


def test_no_two_modules_import_each_other() -> None:
    TopologicalSorter({module: own_imports(module) for module in MODULES}).prepare()  # raises on a cycle


def test_only_the_boundary_knows_narwhals() -> None:
    knowing = {name for name, path in MODULES.items() if any("narwhals" in x for x in imported(path))}
    tables = {"tally", "groups", "opened", "join", "sources", "by_source", "lookup", "design", "people"}
    assert knowing <= {"run.by", *(f"tables.{name}" for name in tables)}


def loaded_after(code: str) -> set[str]:
    """The modules that a fresh interpreter has loaded after running some code."""
    show = f"{code}; import sys; print(*sys.modules, sep='\\n')"
    done = subprocess.run([sys.executable, "-c", show], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_binreps_loads_next_to_nothing() -> None:
    assert not {"numpy", "binreps.counts"} & loaded_after("import binreps")


def test_no_public_name_loads_anything_heavy() -> None:
    loaded = loaded_after("from binreps import *")
    assert "binreps.fits.point.mode" in loaded
    assert not HEAVY & loaded


RUN = """
from contextlib import suppress
from binreps.cli.app import main
with suppress(SystemExit):
    main({words})
import numpy"""

SELDOM = {
    "binreps.fits.batch",
    "binreps.fits.covariates",
    "binreps.fits.sources",
    "binreps.run.save",
    "binreps.show.report",
    "binreps.study.simulate",
}
FOREIGN = {"numpy.f2py.crackfortran", "pyarrow", "pydantic", "unittest"}  # a fifth of a second together


def test_an_analysis_loads_what_it_uses(tmp_path: Path) -> None:
    answered = loaded_after(RUN.format(words=["analyse"]))
    assert {"binreps.fits.bayes", "positive"} <= answered  # it did print
    assert not (SELDOM | FOREIGN) & answered
    written = loaded_after(RUN.format(words=["analyse", "--out", str(tmp_path)]))
    assert "binreps.show.report" in written
    assert not FOREIGN & written


def test_modules_that_are_loaded_later_are_there_when_they_are_used() -> None:
    code = RUN.format(words=["analyse"]) + "; numpy.testing.assert_equal(1, 1)"
    assert "unittest" in loaded_after(code)


def test_the_public_names_are_sorted_and_all_there() -> None:
    assert binreps.__all__ == sorted(binreps.__all__) == dir(binreps)
    assert all(getattr(binreps, name).__doc__ for name in binreps.__all__)
    with pytest.raises(AttributeError, match="no attribute 'fit_magic'"):
        _ = binreps.fit_magic


def test_type_checkers_and_python_find_each_name_at_the_same_place() -> None:
    tree = ast.parse((SOURCE / "__init__.py").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    places = {
        alias.name: node.module for node in imports for alias in node.names if "binreps." in node.module
    }
    assert places.pop("__version__") == "binreps._version"
    assert places == binreps._HOMES
