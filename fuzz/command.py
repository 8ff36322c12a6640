"""The program, run inside this process in a folder of its own."""

from __future__ import annotations

import contextlib
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from random import Random

from binreps.cli.app import main
from fuzz.reading import damaged_file
from fuzz.saved import contents, damaged_model
from fuzz.verdict import WrongError, faulty_sentence

COLUMNS = ("--individual", "--result", "--replicate", "--n", "--s", "--weight", "--positive", "--negative")
OPTIONS = {
    "analyse": (
        *COLUMNS,
        *("--known", "--truth", "--population", "--by", "--method", "--prior-prevalence"),
        *(
            "--prior-false-positive",
            "--prior-false-negative",
            "--cost-false-positive",
            "--cost-false-negative",
        ),
        *("--cost-inconclusive", "--level", "--up-to", "--memory", "--json", "--parquet"),
    ),
    "score": (*COLUMNS, "--population", "--fitted", "--memory"),
    "next": (*COLUMNS, "--cost-per-replicate", "--max-replicates", "--budget", "--new", "--json"),
    "table": (
        *("--up-to", "--population", "--cost-false-positive", "--cost-false-negative"),
        *("--cost-inconclusive", "--level", "--json"),
    ),
    "decide": (
        "--source",
        "--covariate",
        "--population",
        "--fitted",
        "--cost-per-replicate",
        "--ahead",
        "--json",
    ),
    "card": ("--title", "--up-to", "--covariate", "--population", "--cost-per-replicate", "--paper"),
    "read": (*COLUMNS, "--known", "--truth", "--population", "--source", "--covariates", "--save", "--json"),
    "theory": (
        "--prevalence",
        "--false-positive",
        "--false-negative",
        "--individuals",
        "--replicates",
        "--json",
    ),
    "simulate": (
        *("--prevalence", "--false-positive", "--false-negative", "--individuals", "--replicates"),
        *("--seed", "--long"),
    ),
    "prior": (
        *("--expect", "--surprised-above", "--surprised-below", "--between", "--share", "--of"),
        *("--discount", "--json"),
    ),
    "plan": (
        *(
            "--prevalence",
            "--false-positive",
            "--prevalence-width",
            "--error-margin",
            "--inconclusive",
            "--risk",
        ),
        *("--max-tests", "--max-cost", "--assurance", "--level", "--seed", "--json"),
    ),
}
"""Options that may be given to each command."""

FLAGS = ("--json", "--parquet", "--fitted", "--new", "--long")
WORDS = (
    *(
        "0",
        "1",
        "2",
        "3",
        "6",
        "-1",
        "0.1",
        "0.5",
        "0.9",
        "nan",
        "inf",
        "1e400",
        "2,2",
        "0.5,0.5",
        "1,,2",
        "x",
        "",
    ),
    *(
        "2-6",
        "6-2",
        "3,4",
        "patient",
        "test",
        "n",
        "s",
        "count",
        "id",
        "first",
        "bayes",
        "MAP",
        "median",
        "4GB",
    ),
    *(
        "prevalence",
        "sensitivity",
        "--json",
        "--help",
        "-",
        "--",
        "out.csv",
        "👩",
        "1_000",
        "９",
        "0x10",
        "1e3",
    ),
)


def program(rng: Random, folder: Path) -> None:
    """One command with options in random order, some of them absurd."""
    (folder / "here").mkdir()
    with contextlib.chdir(folder / "here"):
        words = _words(rng, Path())
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _wide():
            try:
                main(words)
            except SystemExit as end:
                code = end.code
        _check(code, out.getvalue(), err.getvalue(), words)
    if {one.name for one in folder.iterdir()} - {"here"}:
        raise WrongError("something was written outside the folder")


def _check(code: object, out: str, err: str, words: list[str]) -> None:
    """Exit code 0 and no complaint, or exit code 2 and one sentence."""
    if code not in (0, 2):
        raise WrongError(f"exit code {code} of {words}: {err[-300:]}")
    if code == 2 and (fault := faulty_sentence(err.strip())):
        raise WrongError(f"{words}: {fault}")
    if code == 0 and "NaN" in out:
        raise WrongError(f"{words} prints NaN")


@contextlib.contextmanager
def _wide() -> Iterator[None]:
    """No colours and no wrapping, whatever the terminal."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "200"
    try:
        yield
    finally:
        os.environ.pop("COLUMNS")
        if before is not None:
            os.environ["COLUMNS"] = before


def _words(rng: Random, folder: Path) -> list[str]:
    """A command and its arguments; files are in the folder."""
    command = rng.choice(tuple(OPTIONS))
    words = [command]
    if command == "decide":
        words.append(rng.choice(("2/3", "0/0", "1/6", rng.choice(WORDS))))
    if command in ("analyse", "score", "read") or (command == "next" and rng.random() < 0.4):
        words.append(str(damaged_file(rng, folder)[0]) if rng.random() < 0.9 else rng.choice(WORDS))
    if command == "prior":
        words.append(rng.choice(("prevalence", "sensitivity", "false_positive", rng.choice(WORDS))))
    if command in ("score", "table", "next", "decide", "card"):
        model = folder / "model.json"
        model.write_bytes(damaged_model(rng) if rng.random() < 0.3 else _whole_model(rng))
        words += ["--model", str(model)]
    if command == "plan":
        words += ["--data-sets", "10", "--individuals", "25,50", "--replicates", "3", "--error-margin", "0.1"]
    if command in ("score", "simulate") or rng.random() < 0.15:
        words += [
            "--out",
            rng.choice(("out.csv", "out.parquet", "out.tsv", "out", "no/out.csv", "out.csv.gz")),
        ]
    for option in rng.sample(OPTIONS[command], rng.choice((0, 0, 1, 2, 4))):
        words += [option] if option in FLAGS else [option, rng.choice(WORDS)]
    if rng.random() < 0.05:
        words.insert(rng.randrange(len(words) + 1), rng.choice(WORDS))
    return words


def _whole_model(rng: Random) -> bytes:
    """A saved fit in order."""
    return json.dumps(rng.choice(contents())).encode()
