"""The lowest versions that pyproject.toml declares, as constraints for pip: `python tests/floors.py`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path


def floors() -> list[str]:
    """One `name==version` for each dependency of the package and its extras."""
    project = tomllib.loads(Path(__file__).parents[1].joinpath("pyproject.toml").read_text())["project"]
    extras = [one for many in project["optional-dependencies"].values() for one in many]
    found = [re.match(r"([\w-]+)(?:\[\w+\])?>=([\w.]+)", one) for one in project["dependencies"] + extras]
    return sorted(f"{one[1]}=={one[2]}" for one in found if one)


if __name__ == "__main__":
    print("\n".join(floors()))
