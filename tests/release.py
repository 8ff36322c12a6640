"""Build wheel and sdist twice, compare them, and check what is in them: `python tests/release.py`."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = ("py.typed", "web/page/page.html", "web/page/style.css", "study/data/screening.csv")


def main() -> int:
    """Build into dist/, and say what was built."""
    with tempfile.TemporaryDirectory() as again:
        first, second = build(ROOT / "dist"), build(Path(again))
        assert first == second, "two builds differ"
    version = versions()
    wheel, sdist = (ROOT / "dist" / f"binreps-{version}{end}" for end in ("-py3-none-any.whl", ".tar.gz"))
    check_wheel(wheel)
    check_sdist(sdist)
    for name, digest in first.items():
        print(f"{digest}  dist/{name}")
    return 0


def build(target: Path) -> dict[str, str]:
    """The hash of each file that is built; times are those of the last commit."""
    for old in target.glob("binreps-*"):
        old.unlink()
    last = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True)
    environment = {**os.environ, "SOURCE_DATE_EPOCH": last.stdout.strip() or "1"}
    command = [sys.executable, "-m", "build", "--outdir", str(target), str(ROOT)]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL)
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in sorted(target.iterdir())}


def versions() -> str:
    """The version, which the changelog and the citation tell too."""
    version = re.search(r'= "(.+)"', (ROOT / "src/binreps/_version.py").read_text())
    assert version is not None
    assert f"\nversion: {version[1]}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    dated = rf"^## \[{re.escape(version[1])}\] - \d{{4}}-\d\d-\d\d$"
    assert re.search(dated, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    return version[1]


def check_wheel(wheel: Path) -> None:
    """The package, all of it, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    source = {
        f"binreps/{file.relative_to(ROOT / 'src/binreps').as_posix()}"
        for file in (ROOT / "src/binreps").rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    assert source <= names, sorted(source - names)
    assert {f"binreps/{name}" for name in NEEDED} <= names
    assert all(name.startswith(("binreps/", "binreps-")) for name in names)


def check_sdist(sdist: Path) -> None:
    """What is needed to build, test and document it, without what tools left."""
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"pyproject.toml", "README.md", "LICENSE", "Makefile", "tests/conftest.py"} <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith((".venv", "site", "demo"))]


if __name__ == "__main__":
    sys.exit(main())
