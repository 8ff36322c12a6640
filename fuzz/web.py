"""The API, asked inside this process."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from fuzz import values
from fuzz.reading import damaged_file
from fuzz.verdict import WrongError, faulty_sentence

PATHS = ("fit", "score", "decision-table", "explain", "check", "next", "prior", "lines", "figures")
FORMS = ("columns", "counts", "scores", "summary", "report")


@cache
def client() -> Any:
    """A client whose requests never leave the process."""
    from starlette.testclient import TestClient

    from binreps.web.app import create_app

    return TestClient(create_app(), base_url="http://localhost", raise_server_exceptions=False)


def request(rng: Random, folder: Path) -> None:
    """One request: a damaged body, or a damaged file in a form."""
    if rng.random() < 0.2:
        path, _ = damaged_file(rng, folder)
        form = {"request": json.dumps(values.damaged_json(rng, {"level": 0.9, "columns": {"n": "n"}}))}
        how: Any = {
            "files": {"file": (path.name, path.read_bytes())},
            "data": form if rng.random() < 0.5 else {},
        }
        answer = client().post(f"/api/{rng.choice(FORMS)}", **how)
    else:
        name = rng.choices(PATHS, (4, 4, 4, 3, 1, 1, 8, 8, 0.3))[0]
        text = json.dumps(_damaged(rng, _body(rng, name)))
        body = values.damaged(rng, text.encode()) if rng.random() < 0.2 else text.encode()
        answer = client().post(f"/api/{name}", content=body, headers={"content-type": "application/json"})
    _check(answer)


def _body(rng: Random, name: str) -> dict[str, Any]:
    """A request in order."""
    if name == "prior":
        return {"rate": "sensitivity", "low": 0.7, "high": 0.9}
    if name == "lines":
        return {"name": "data.csv", "columns": {"n": "n", "s": "s"}, "level": 0.9}
    cells = {"n": [3, 3, 3], "s": [0, 1, 3], "weight": [60, 9, 31]}
    if rng.random() < 0.3:
        cells |= rng.choice(({"known": [None, 0, 1]}, {"truth": [0, 0, 1]}, {"population": ["a", "b", "b"]}))
    body: dict[str, Any] = {
        "cells": cells,
        "prior": {"prevalence": [0.5, 0.5]},
        "loss": {"inconclusive": 0.2},
    }
    if name == "score":
        body |= {"n": [2, 3], "s": [1, 3]}
    if name == "explain":
        body |= {"n": 3, "s": 2}
    return body


def _damaged(rng: Random, body: Any) -> Any:
    """A body with none, one or a few values changed."""
    for _ in range(rng.choice((0, 1, 1, 2, 4))):
        body = values.damaged_json(rng, body)
    return body


def _check(answer: Any) -> None:
    """An answer, or one sentence about what is wrong with the request."""
    if answer.status_code == 200:
        if "json" in answer.headers["content-type"] and "NaN" in answer.text:
            raise WrongError("the answer holds NaN")
        return
    if not 400 <= answer.status_code < 500:
        raise WrongError(f"status {answer.status_code}: {answer.text[:300]}")
    if fault := faulty_sentence(str(answer.json()["error"])):
        raise WrongError(fault)
