from __future__ import annotations

import csv
import io
import json
import logging
import os
import re
import socket
import sys
import tempfile
import time
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import openpyxl
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

import binreps as br
from binreps.cli.web import web_command
from binreps.decide.answer import explain
from binreps.run.methods import METHODS
from binreps.show.summary import summary
from binreps.study.datasets import READERS_FILE, SCREENING_FILE, WELLS_FILE
from binreps.tables.roles import PARTS
from binreps.web import limits, work
from binreps.web.app import create_app, page_files
from binreps.web.requests import Named
from binreps.web.runner import Runner
from binreps.web.uploads import Uploads, shown_name
from screening import screening_counts, screening_truth

pytestmark = pytest.mark.slow

COUNTS = br.CountTable([4] * 5, range(5), [50, 18, 6, 9, 17])
CELLS = {"n": [4] * 5, "s": list(range(5)), "weight": [50, 18, 6, 9, 17]}
EXAMPLE = SCREENING_FILE.read_bytes()
NAMED = {"columns": {"individual": "individual", "result": "result", "truth": "truth"}}
TOKEN = "abcdefgh12345678"


@pytest.fixture(scope="module")
def client() -> TestClient:
    return TestClient(create_app(), base_url="http://localhost")


def upload(
    client: TestClient, path: str, content: bytes, name: str = "tests.csv", request: Any = None
) -> Any:
    data = {} if request is None else {"request": json.dumps(request)}
    return client.post(path, files={"file": (name, content)}, data=data)


def sentence(response: Any) -> str:
    assert response.status_code == 422, response.text
    return str(response.json()["error"])


# The numbers are the library's --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chosen", "settings"),
    [
        ({}, br.Settings()),
        (
            {"prior": {"prevalence": [1, 9]}, "loss": {"false_negative": 5, "inconclusive": [0.1, 0.2]}},
            br.Settings(prior=br.Prior((1, 9)), loss=br.Loss(1, 5, (0.1, 0.2))),
        ),
        ({"method": "map", "level": 0.8, "replicates": 3}, br.Settings("map", level=0.8, replicates=3)),
    ],
)
def test_fit_is_the_summary_of_the_library(client: TestClient, chosen: Any, settings: br.Settings) -> None:
    content = client.post("/api/fit", json={"cells": CELLS, **chosen}).json()
    curves = content.pop("curves")
    assert len(content.pop("scores")["score"]) == len(CELLS["n"])
    assert content == json.loads(json.dumps(summary(br.analyse(COUNTS, replace(settings, model=None)))))
    assert set(curves[0]) == {"prevalence", "false_positive", "false_negative"}


def test_scores_stand_beside_the_cells_that_were_sent(client: TestClient) -> None:
    cells = {"n": [4, 2, 4], "s": [0, 2, 3], "weight": [50, 1, 0]}
    scores = client.post("/api/fit", json={"cells": cells}).json()["scores"]
    fit = br.fit_bayes(br.CountTable(cells["n"], cells["s"], cells["weight"]))
    assert scores["score"][:2] == fit.score([4, 2], [0, 2]).tolist()
    assert scores["score"][2] in (None, fit.score(4, 3))


def test_covariates_and_sources_come_out_of_a_file_and_go_into_a_fit(client: TestClient) -> None:
    readers = READERS_FILE.read_bytes()
    content = upload(client, "/api/counts", readers, request={"columns": {"truth": "truth"}}).json()
    cells = content["cells"]
    fitted = client.post("/api/fit", json={"cells": cells, "model": "sources"}).json()
    fit = br.fit(READERS_FILE, individual="slide", result="result", source="reader")
    rows = fitted["populations"][0]["sources"]
    assert {row["source"]: row["readings"] for row in rows} == dict(
        zip(fit.sources, map(int, fit.source_table()["readings"]), strict=True)
    )
    said = _said(readers.decode(), "S007")
    place = content["individuals"]["cell"][content["individuals"]["name"].index("S007")]
    assert fitted["scores"]["score"][place] == pytest.approx(float(fit.score(said)), abs=0.01)
    asked = {"cells": cells, "model": "sources", "said": said, "new": True}
    answer = client.post("/api/explain", json=asked).json()
    assert len(answer["reasons"]) == 4
    assert answer["next"]["source"] in fit.sources


def _said(text: str, slide: str) -> dict[str, int]:
    """What each reader said of a slide."""
    rows = (line.split(",") for line in text.splitlines()[1:])
    return {reader: int(result == "pos") for who, reader, result, _ in rows if who == slide}


def test_scores_by_covariates_belong_to_their_individuals(client: TestClient) -> None:
    rows = list(csv.DictReader(io.StringIO(WELLS_FILE.read_text(encoding="utf-8"))))
    request_ = {"columns": {"covariates": "temperature"}}
    content = upload(client, "/api/counts", WELLS_FILE.read_bytes(), request=request_).json()
    people = content["individuals"]
    assert people["name"] == [row["sample"] for row in rows]
    fitted = client.post("/api/fit", json={"cells": content["cells"], "model": "covariates"}).json()
    wells = [f"well {k}" for k in range(1, 7)]
    fit = br.fit(WELLS_FILE, individual="sample", replicates=wells, covariates="temperature")
    s = [sum(int(row[well]) for well in wells) for row in rows]
    expected = fit.score(
        [6] * len(rows), s, covariates={"temperature": [float(row["temperature"]) for row in rows]}
    )
    scores = [fitted["scores"]["score"][cell] for cell in people["cell"]]
    assert scores == pytest.approx(expected.tolist(), abs=1e-6)
    answer = {"cells": content["cells"], "model": "covariates", "n": 6, "s": 2, "new": True}
    cold, warm = (
        client.post("/api/explain", json={**answer, "known_covariates": {"temperature": degrees}}).json()
        for degrees in (5.0, 18.0)
    )
    assert cold["probability"] < 0.5 < warm["probability"]


@pytest.mark.parametrize(
    ("readings", "words"),
    [
        ({"cell": [9], "source": [0], "yes": [1], "no": [0]}, "each cell must be a number from 0 to 4"),
        ({"cell": [0], "source": [1], "yes": [1], "no": [0]}, "each source must be a number from 0 to 0"),
        ({"cell": [0], "source": [0], "yes": [1, 1], "no": [0]}, "must be equally long"),
        ({"cell": [0], "source": [0], "yes": [-1], "no": [0]}, "yes and no must be 0 or more"),
        ({"cell": [0], "source": [0], "yes": [10**300], "no": [0]}, "numbers must be from 0"),
    ],
)
def test_impossible_readings_get_a_sentence(client: TestClient, readings: Any, words: str) -> None:
    asked = {"cells": {**CELLS, "readings": {"sources": ["ann"], **readings}}, "model": "sources"}
    assert words in sentence(client.post("/api/fit", json=asked))


def test_curves_are_densities(client: TestClient) -> None:
    curves = client.post("/api/fit", json={"cells": CELLS}).json()["curves"][0]
    for curve in curves.values():
        assert np.trapezoid(curve["posterior"], curve["x"]) == pytest.approx(1, abs=0.01)


def test_several_populations(client: TestClient) -> None:
    cells = {
        "n": [2] * 6,
        "s": [0, 1, 2] * 2,
        "weight": [80, 15, 5, 20, 20, 60],
        "population": list("aaabbb"),
    }
    content = client.post("/api/fit", json={"cells": cells}).json()
    fit = br.fit_populations(
        {
            "a": br.CountTable([2] * 3, range(3), [80, 15, 5]),
            "b": br.CountTable([2] * 3, range(3), [20, 20, 60]),
        }
    )
    found = [part["rates"][0]["bayes"] for part in content["populations"]]
    assert [part["name"] for part in content["populations"]] == ["a", "b"]
    assert found == [fit["a"].rates.prevalence, fit["b"].rates.prevalence]
    asked = {"cells": cells, "n": 2, "s": 1}
    assert "population must be one of a, b" in sentence(client.post("/api/explain", json=asked))
    told = client.post("/api/explain", json={**asked, "population": "b"}).json()["sentence"]
    assert told == explain(fit["b"], br.Loss(), 2, 1).sentence


@pytest.mark.parametrize("new", [True, False])
def test_score(client: TestClient, new: bool) -> None:
    asked = {"cells": CELLS, "n": [3, 4], "s": [2, 2], "new": new, "loss": {"inconclusive": 0.1}}
    rows = client.post("/api/score", json=asked).json()["scores"]
    fit, loss = br.fit_bayes(COUNTS), br.Loss(inconclusive=0.1)
    expected = (fit.predict if new else fit.score)([3, 4], [2, 2])
    lower, upper = (fit.predict_interval if new else fit.score_interval)([3, 4], [2, 2])
    assert [row["probability"] for row in rows] == expected.tolist()
    # ends are inverted for all records at once, and rounded with those that are asked for together
    assert [row["lower"] for row in rows] == pytest.approx(lower.tolist(), abs=1e-9)
    assert [row["upper"] for row in rows] == pytest.approx(upper.tolist(), abs=1e-9)
    assert [row["decision"] for row in rows] == br.decision_words(loss.classify(expected))


def test_decision_table_explain_and_check(client: TestClient) -> None:
    fit, loss = br.fit_bayes(COUNTS), br.Loss(inconclusive=0.1)
    asked = {"cells": CELLS, "loss": {"inconclusive": 0.1}}
    table = client.post("/api/decision-table", json=asked).json()["tables"][0]["rows"]
    assert [row["probability"] for row in table] == list(br.decision_table(fit, loss, 4)["probability"])
    told = client.post("/api/explain", json={**asked, "n": 6, "s": 2}).json()["sentence"]
    assert told == explain(fit, loss, 6, 2).sentence
    assert client.post("/api/check", json=asked).json()["findings"] is not None
    again = br.next_replicates(COUNTS, fit, loss, cost_per_replicate=0.01, budget=9)
    found = client.post("/api/next", json={**asked, "budget": 9}).json()
    assert [row["measure"] for row in found["rows"]] == list(again.table()["measure"])


def test_a_study_is_planned(client: TestClient) -> None:
    answer = client.post("/api/plan", json={"prevalence": 0.2, "prevalence_width": 0.3}).json()
    assert answer["sentence"]
    assert {row["reached"] for row in answer["rows"]} <= {"yes", "no", "perhaps"}
    assert "prevalence_width must" in sentence(client.post("/api/plan", json={"prevalence_width": -1}))


def test_a_plan_is_ended_after_some_seconds_of_the_processor(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "PLANNING", 0.0)
    response = client.post("/api/plan", json={"prevalence_width": 0.3})
    wanted = (
        "a plan for such a test takes more than 0 seconds of the processor; use the library or the command"
    )
    assert sentence(response).startswith(wanted)


def test_a_plan_tells_how_far_it_is(client: TestClient) -> None:
    asked = {"prevalence_width": 0.05}
    headers = {"accept": "application/x-ndjson"}
    with client.stream("POST", "/api/plan", json=asked, headers=headers) as response:
        lines = [json.loads(line) for line in response.iter_lines()]
    assert lines[-1]["answer"]["rows"]
    assert len(lines) > 1
    assert all(0 <= line["done"] <= line["total"] for line in lines[:-1])
    wrong = client.post("/api/plan", json={"prevalence_width": -1}, headers=headers)
    assert "prevalence_width" in wrong.json()["error"]


def test_prior_from_words(client: TestClient) -> None:
    said = {"rate": "sensitivity", "expect": 0.9, "surprised_below": 0.75}
    answer = client.post("/api/prior", json=said).json()
    belief = br.elicit.guess("sensitivity", 0.9, surprised_below=0.75)
    assert (answer["rate"], tuple(answer["shapes"])) == ("false_negative", belief.shapes)
    assert client.post("/api/prior", json={"of": 10, "count": 2}).json()["shapes"] == [3, 9]
    assert client.post("/api/prior", json={"low": 0.1, "high": 0.3}).status_code == 200
    assert "say what is believed" in sentence(client.post("/api/prior", json={}))


def test_the_switch_of_a_poor_test_reaches_the_library(client: TestClient) -> None:
    cells = {"n": [5] * 6, "s": list(range(6)), "weight": [265, 121, 80, 26, 7, 1]}
    prior = {"better_than_chance": True}
    answer = client.post("/api/fit", json={"cells": cells, "prior": prior, "method": "map"}).json()
    assert answer["options"]["prior"]["better_than_chance"] is True
    fit = br.fit_map(br.CountTable(**cells), br.Prior((1, 1), better_than_chance=True))
    assert answer["fit"]["results"]["false_negative"] == pytest.approx(fit.rates.false_negative)
    lines = client.post("/api/lines", json={"prior": prior, "name": "a.csv"}).json()
    assert "--better-than-chance" in lines["command"]
    assert "better_than_chance=True" in lines["python"]
    said = {"rate": "sensitivity", "expect": 0.4, "surprised_below": 0.2}
    assert "better_than_chance=True takes" in sentence(client.post("/api/prior", json=said))
    belief = br.elicit.guess("sensitivity", 0.4, surprised_below=0.2, better_than_chance=True)
    believed = client.post("/api/prior", json={**said, **prior}).json()
    assert tuple(believed["shapes"]) == belief.shapes
    plan = {"prevalence": 0.5, "false_negative": 0.7, "prevalence_width": 0.9, **prior}
    assert client.post("/api/plan", json=plan).status_code == 200
    assert (
        client.post("/api/fit", json={"cells": cells, "prior": {"better_than_chance": 1}}).status_code == 422
    )


def test_figures_are_those_of_the_report(client: TestClient) -> None:
    content = client.post("/api/figures", json={"cells": CELLS}).json()
    assert {"rates", "decisions", "individuals", "risks"} <= {one["name"] for one in content["figures"]}
    assert all("config" not in one["spec"] for one in content["figures"])


# Files --------------------------------------------------------------------------------------------------


def test_a_file_becomes_cells(client: TestClient) -> None:
    described = upload(client, "/api/columns", EXAMPLE).json()
    assert described["guess"]["columns"] == {"individual": "individual", "result": "result"}
    content = upload(client, "/api/counts", EXAMPLE, request=NAMED).json()
    cells = content["cells"]
    assert br.CountTable(cells["n"], cells["s"], cells["weight"]) == screening_counts()
    people = content["individuals"]
    assert people["name"] == list(screening_truth())
    sizes, positives = ([cells[name][i] for i in people["cell"]] for name in ("n", "s"))
    assert br.CountTable(sizes, positives) == screening_counts()
    assert content["missing"] == 7
    judged = client.post("/api/fit", json={"cells": cells}).json()["populations"][0]["judged"]
    assert set(judged) == {"average", "median", "map", "bayes"}


@pytest.mark.parametrize(
    ("text", "request_", "names"),
    [
        ("who,a,b,c\nx,1,1,0\ny,0,0,\n", {}, ["x", "y"]),
        ("a,b,c\n1,1,0\n0,0,\n", {}, ["row 1", "row 2"]),
        ("patient,a,b\nx,1,1\ny,0,0\n", {}, ["x", "y"]),
        ("n,s,individuals\n3,1,5\n", {}, None),
        ("site;patient;test\nA;1;pos\nB;1;neg\n", {"columns": {"population": "site"}}, ["1", "1"]),
    ],
)
def test_kinds_of_files(client: TestClient, text: str, request_: Any, names: Any) -> None:
    content = upload(client, "/api/counts", text.encode(), request=request_).json()
    people = content["individuals"]
    assert people is None if names is None else people["name"] == names
    if request_:
        assert content["cells"]["population"] == ["A", "B"]
        assert people["cell"] == [0, 1]


def test_scores_are_those_of_the_library(client: TestClient) -> None:
    request = {**NAMED, "loss": {"inconclusive": 0.1}}
    rows = list(csv.DictReader(io.StringIO(upload(client, "/api/scores", EXAMPLE, request=request).text)))
    fit, loss = br.fit_bayes(screening_counts()), br.Loss(inconclusive=0.1)
    assert len(rows) == 120
    for row in rows:
        score = fit.score(int(row["n"]), int(row["s"]))
        assert float(row["score"]) == score
        assert row["decision"] == br.decision_words(loss.classify(score))


def test_report_and_summary_name_the_clients_file_and_no_folder(client: TestClient) -> None:
    page = upload(client, "/api/report", EXAMPLE, "my tests.csv", NAMED)
    assert page.headers["content-disposition"] == 'attachment; filename="report.html"'
    assert "binreps analyse &#39;my tests.csv&#39;" in page.text
    assert "P120" in page.text
    assert tempfile.gettempdir() not in page.text
    content = upload(client, "/api/summary", EXAMPLE, "my tests.csv", NAMED).json()
    assert content["input"]["files"][0]["name"] == "my tests.csv"
    assert tempfile.gettempdir() not in json.dumps(content)
    kept = Path(tempfile.mkdtemp(), "summary.json")
    kept.write_text(json.dumps(content), encoding="utf-8")
    assert br.load_fit(kept) == br.fit_bayes(screening_counts())


def test_a_card_for_the_bedside(client: TestClient) -> None:
    page = upload(client, "/api/card", EXAMPLE, request={**NAMED, "title": "Rapid <test>"}).text
    assert "Rapid &lt;test&gt;" in page
    assert "tests.csv" in page
    by_source = {"columns": {"source": "reader", "truth": "truth"}, "model": "sources"}
    assert "source" in sentence(upload(client, "/api/card", READERS_FILE.read_bytes(), request=by_source))


def test_models_are_compared_and_the_better_one_is_named(client: TestClient) -> None:
    cells = upload(client, "/api/counts", WELLS_FILE.read_bytes()).json()["cells"]
    content = client.post("/api/compare", json={"cells": cells}).json()
    expected = br.compare(WELLS_FILE, individual="sample", replicates=[f"well {k}" for k in range(1, 7)])
    assert content["preferred"] == expected.preferred == "correlated"
    assert content["verdict"]["sentence"] == expected.verdict.sentence
    assert content["verdict"]["action"]["value"] == "correlated"
    dear = client.post("/api/compare", json={"cells": cells, "loss": {"inconclusive": 0.45}}).json()
    assert dear["verdict"]["numbers"]["changed"] != content["verdict"]["numbers"]["changed"]


def test_without_a_file_the_cells_are_scored(client: TestClient) -> None:
    text = client.post("/api/scores", data={"request": json.dumps({"cells": CELLS})}).text
    assert [row["s"] for row in csv.DictReader(io.StringIO(text))] == list("01234")
    assert "send a file, or cells" in sentence(client.post("/api/report", data={"request": "{}"}))


def test_lines_repeat_the_page(client: TestClient) -> None:
    request = {"name": "a b.csv", **NAMED, "loss": {"inconclusive": 0.1}}
    lines = client.post("/api/lines", json=request).json()
    assert lines["command"].startswith("binreps analyse 'a b.csv' --individual individual --result result")
    compile(lines["python"], "lines", "exec")
    assert "inconclusive=0.1" in lines["python"]


def test_uploads_leave_nothing_behind(client: TestClient, monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for path in ("/api/counts", "/api/scores", "/api/report", "/api/summary"):
        upload(client, path, EXAMPLE, request=NAMED)
        upload(client, path, b"n,s\n1,2\n")
    assert list(tmp_path.iterdir()) == []
    with TestClient(create_app(), base_url="http://localhost") as served:
        kept = upload(served, "/api/columns", EXAMPLE).json()["id"]
        upload(served, "/api/columns", b"")
        upload(served, "/api/columns", b"x", "notes.docx")
        assert len(kept) >= 20
        assert len([file for file in tmp_path.rglob("*") if file.is_file()]) == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_sent_once_and_then_known_by_its_id(client: TestClient) -> None:
    key = upload(client, "/api/columns", EXAMPLE, "my tests.csv").json()["id"]
    form = {"request": json.dumps(NAMED), "upload": key}
    for path in ("/api/counts", "/api/summary", "/api/scores", "/api/report"):
        again, before = client.post(path, data=form), upload(client, path, EXAMPLE, "my tests.csv", NAMED)
        assert again.status_code == 200
        assert again.text == before.text
    bad = {"request": json.dumps({"columns": {"result": "no such"}}), "upload": key}
    told = sentence(client.post("/api/counts", data=bad))
    assert told.startswith("my tests.csv has no header with a column 'no such'")
    other = client.post("/api/columns", files={"file": ("b.csv", b"n,s\n3,1\n")}, data={"upload": key})
    gone = client.post("/api/counts", data=form)
    assert gone.status_code == 410
    assert gone.json()["error"] == "the file that was sent is no longer here; send it again"
    assert client.post("/api/counts", data={"upload": other.json()["id"]}).status_code == 200


def test_what_is_kept_is_bounded(monkeypatch: Any, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(limits, "KEPT_FILES", 3)
    monkeypatch.setattr(limits, "KEPT_BYTES", 100)

    def kept() -> list[int]:
        return sorted(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file())

    with TestClient(create_app(), base_url="http://localhost") as served:
        keys = [upload(served, "/api/columns", b"n,s\n3,1\n").json()["id"] for _ in range(5)]
        assert kept() == [8] * 3
        asked = [served.post("/api/counts", data={"upload": key}).status_code for key in keys]
        assert asked == [410, 410, 200, 200, 200]
        upload(served, "/api/columns", b"n,s\n" + b"3,1\n" * 23)
        assert kept() == [96]


def test_a_file_stays_while_it_is_read() -> None:
    store = Uploads()
    key = store.add(io.BytesIO(EXAMPLE), "a.csv")
    with store.using(key) as (path, name):
        store.drop(key)
        assert (path.read_bytes(), name) == (EXAMPLE, "a.csv")
        with pytest.raises(HTTPException, match="send it again"), store.using(key):
            pass
    assert not path.exists()
    store.close()


def test_the_page_offers_what_the_library_has(client: TestClient) -> None:
    module = client.get("/page/offered.js").text
    offered = json.loads(module.removeprefix("export const offered = ").removesuffix(";\n"))
    assert [part["id"] for part in offered["parts"]] == list(PARTS) == list(Named.model_fields)
    assert offered["vocabularies"]["yes/no"] == [["yes", "y"], ["no", "n"]]
    assert {method["id"] for method in offered["methods"]} == set(METHODS)


@pytest.mark.parametrize(
    ("content", "name", "words"),
    [
        (b"", "empty.csv", "empty.csv is empty"),
        (b"\xff\xfe\x00a", "bad.csv", "bad.csv is not UTF-8 text"),
        (b"PAR1", "bad.parquet", "bad.parquet"),
        (b"a,b\nx,z\n", "words.csv", "no column holds results"),
        (b"x", "/etc/passwd", "passwd cannot be read"),
        (b"x", "old.xls", "save it as CSV"),
        (b"x", "book.xlsx", "book.xlsx is not a workbook"),
    ],
)
def test_bad_files_get_a_sentence_with_their_own_name(
    client: TestClient, content: bytes, name: str, words: str
) -> None:
    told = sentence(upload(client, "/api/counts", content, name))
    assert words in told
    assert tempfile.gettempdir() not in told


def test_impossible_counts_get_the_sentence_of_the_library(client: TestClient) -> None:
    request = {"columns": {"n": "n", "s": "s"}}
    with pytest.raises(br.DataError) as refused:
        br.count_table(_frame({"n": ["3"], "s": ["5"]}), n="n", s="s")
    assert sentence(upload(client, "/api/counts", b"n,s\n3,5\n", request=request)) == str(refused.value)


def _frame(columns: Any) -> Any:
    import pyarrow

    return pyarrow.table(columns)


def test_another_sheet_is_described_and_counted_without_a_new_upload(client: TestClient) -> None:
    book, content = openpyxl.Workbook(), io.BytesIO()
    book.active.title = "Cover"
    book.active.append(["Study", "2025"])
    data = book.create_sheet("Data")
    for row in (["id", "test 1", "test 2"], ["a", 1, 1], ["b", 0, "ND"], ["c", 0, "weak"], ["d", 0, 1]):
        data.append(row)
    book.save(content)
    first = upload(client, "/api/columns", content.getvalue(), "b.xlsx").json()
    assert (first["sheet"], first["sheets"], first["guess"]) == ("Cover", ["Cover", "Data"], None)
    form = {"upload": first["id"], "sheet": "Data"}
    second = client.post("/api/columns", data=form).json()
    assert second["id"] == first["id"]
    assert second["proposed"] == {"individual": "id", "replicates": ["test 1", "test 2"]}
    odd = {column["name"]: (column["odd"], column["no_result"]) for column in second["columns"]}
    assert odd["test 2"] == ({"weak": 1}, {"nd": 1})
    how = {"sheet": "Data", "columns": {**second["proposed"], "missing": "weak"}}
    counted = client.post("/api/counts", data={"upload": first["id"], "request": json.dumps(how)}).json()
    cells = counted["cells"]
    assert [cells[name] for name in ("n", "s", "weight")] == [[2, 1, 2], [2, 0, 1], [1, 2, 1]]
    assert cells["readings"]["sources"] == ["test 1", "test 2"]
    assert counted["read_as"][0].startswith("read as one row per individual, one column per replicate")
    assert {note["id"] for note in counted["notes"]} == {"words-for-no-result"}
    assert "file: send one" in sentence(client.post("/api/columns"))
    book.create_sheet("Empty")
    content = io.BytesIO()
    book.save(content)
    kept = upload(client, "/api/columns", content.getvalue(), "b.xlsx").json()["id"]
    empty = client.post("/api/columns", data={"upload": kept, "sheet": "Empty"}).json()
    assert (empty["columns"], empty["sheets"]) == ([], ["Cover", "Data", "Empty"])
    assert empty["problem"].startswith(
        "sheet 'Empty' of b.xlsx is empty; the other sheets are 'Cover', 'Data'"
    )


def test_ambiguous_columns_are_described_and_not_guessed(client: TestClient) -> None:
    described = upload(client, "/api/columns", b"a,b,c\n1,2,x\n").json()
    assert described["guess"] is None
    assert "name the result (--result)" in described["problem"]
    assert [column["name"] for column in described["columns"]] == ["a", "b", "c"]


def test_the_clients_name_is_only_shown() -> None:
    assert shown_name("../../etc/x\n\x07.csv") == "x.csv"
    assert shown_name("") == "data.csv"
    assert len(shown_name("a" * 1000)) == 120


# Bad requests -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        ({"cells": {"n": [1.5], "s": [1]}}, "n must be whole numbers from 0 to 2^53, got 1.5 at position 0"),
        ({"cells": {"n": [1], "s": [2]}}, "s must be ≤ n, got s = 2 with n = 1 at position 0"),
        ({"cells": {"n": [1], "s": ["x"]}}, "cells.s.0"),
        ({"cells": {"n": [10**400], "s": [1]}}, "n must be whole numbers from 0 to 2^53"),
        ({"cells": CELLS, "method": "magic"}, "method must be one of average, median, map, bayes"),
        ({"cells": CELLS, "level": 2}, "level must be between 0 and 1"),
        ({"cells": CELLS, "level": 0.99999}, "level must be from 0.01 to 0.9999 on the page, got 0.99999"),
        ({"cells": CELLS, "loss": {"inconclusive": 0}}, "thresholds follow only from costs > 0"),
        (
            {"cells": CELLS, "prior": {"prevalence": [0, 1]}},
            "the prior of prevalence must have finite shapes",
        ),
        ({"cells": CELLS, "prior": {"prevalence": [1, 1e7]}}, "shapes from 0.05 to 1,000,000 on the page"),
        ({"cells": CELLS, "replicates": 51}, "replicates must be at most 50 on the page, got 51"),
        ({"cells": CELLS, "surprise": 1}, "surprise: extra inputs are not permitted"),
        ({"cells": {"n": [10**7], "s": [1]}}, "at most 1,000,000 replicates of one individual"),
        ({"cells": {"n": [3], "s": [1], "weight": [10**10]}}, "at most 1,000,000,000 individuals"),
        ({"cells": {"n": list(range(2001)), "s": [0] * 2001}}, "at most 2,000 cells, got 2,001"),
        ({"cells": {**CELLS, "known": [0] * 5, "truth": [0] * 5}}, "known or truth, not both"),
        ({"cells": {**CELLS, "population": ["a"]}}, "population must be as long as n (5), got 1"),
        ({"cells": {**CELLS, "known": [7] * 5}}, "known must be 0, 1 or missing, got 7"),
    ],
)
def test_bad_requests_get_the_sentence_of_the_library(client: TestClient, request_: Any, words: str) -> None:
    assert words in sentence(client.post("/api/fit", json=request_))


def test_what_is_no_json_gets_a_sentence(client: TestClient) -> None:
    for body in (b"{", b"[]", b'{"cells": NaN}', b"\xff", b"[" * 100_000):
        response = client.post("/api/fit", content=body, headers={"content-type": "application/json"})
        assert response.status_code in (400, 422)
        assert response.json()["error"]
    assert sentence(client.post("/api/counts")).startswith("file: ")
    assert client.post("/api/scores", data={"request": "{"}).status_code == 422


def test_half_a_letter_breaks_nothing(client: TestClient) -> None:
    response = client.post(
        "/api/fit",
        content=b'{"cells": {"n": [1], "s": [1], "\\ud800": 1}}',
        headers={"content-type": "application/json"},
    )
    assert response.status_code == 422


def test_a_mistake_of_ours_tells_no_data(client: TestClient, monkeypatch: Any, caplog: Any) -> None:
    def broken(_: Any) -> Any:
        raise KeyError("patient 007")

    monkeypatch.setattr(work, "fit", broken)
    caplog.set_level(logging.INFO, "binreps.web")
    response = client.post("/api/fit?secret=1", json={"cells": CELLS})
    assert (response.status_code, list(response.json())) == (500, ["error"])
    assert "content-security-policy" in response.headers
    assert "007" not in response.text + caplog.text
    ours = [record.getMessage() for record in caplog.records if record.name == "binreps.web"]
    assert ours[0].startswith("KeyError at ")
    assert ours[1:] == ["POST /api/fit 500"]


# Limits -------------------------------------------------------------------------------------------------


def test_bodies_that_are_too_long(client: TestClient, monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "BODY_BYTES", 1000)
    monkeypatch.setattr(limits, "UPLOAD_BYTES", 2**20)
    long = json.dumps({"cells": {"n": [1] * 1000, "s": [0] * 1000}}).encode()
    assert client.post("/api/fit", content=long).status_code == 413

    def chunks() -> Any:
        yield from (long[i : i + 100] for i in range(0, len(long), 100))

    response = client.post("/api/fit", content=chunks(), headers={"content-type": "application/json"})
    assert response.status_code == 413
    assert "at most" in response.json()["error"]
    assert upload(client, "/api/columns", b"a,b\n" * 2**19).status_code == 413
    assert upload(client, "/api/columns", EXAMPLE).status_code == 200


def test_rows_populations_and_workbooks_are_limited(client: TestClient, monkeypatch: Any) -> None:
    monkeypatch.setattr(limits, "ROWS", 100)
    assert "at most 100 rows" in sentence(upload(client, "/api/counts", EXAMPLE, request=NAMED))
    many = "site,n,s\n" + "".join(f"{i},3,1\n" for i in range(31))
    told = sentence(upload(client, "/api/counts", many.encode(), request={"columns": {"population": "site"}}))
    assert "at most 30 populations, got 31" in told
    monkeypatch.setattr(limits, "WORKBOOK_BYTES", 1000)
    book = io.BytesIO()
    with zipfile.ZipFile(book, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("sheet.xml", b"0" * 10**6)
    assert "unpacks to more than" in sentence(upload(client, "/api/counts", book.getvalue(), "b.xlsx"))


def test_a_score_asks_for_a_bounded_number_of_answers(client: TestClient) -> None:
    asked = {"cells": CELLS, "n": [1] * 2001, "s": [0] * 2001}
    assert "at most 2,000 individuals to score" in sentence(client.post("/api/score", json=asked))
    assert "at most 1,000,000 replicates" in sentence(
        client.post("/api/score", json={**asked, "n": [10**7], "s": [0]})
    )


def test_analyses_are_remembered_within_bounds(client: TestClient) -> None:
    work._remembered.cache_clear()
    several = [{**CELLS, "weight": [50 + i, 18, 6, 9, 17]} for i in range(10)]
    for cells in several:
        client.post("/api/decision-table", json={"cells": cells, "replicates": 1})
    for cost in (0.1, 0.2):  # other costs, the same fit
        asked = {"cells": several[-1], "replicates": 1, "n": 3, "s": 1, "loss": {"inconclusive": cost}}
        client.post("/api/explain", json=asked)
    info = work._remembered.cache_info()
    assert (info.currsize, info.misses, info.hits) == (8, 10, 2)


def _endless() -> None:
    time.sleep(600)


def _who() -> int:
    return os.getpid()


def _die() -> None:
    os._exit(1)


def test_work_that_takes_too_long_is_stopped_and_the_next_is_done(monkeypatch: Any) -> None:
    async def ask() -> tuple[int, int, int]:
        run = Runner(1)
        first, again = await run(_who), await run(_who)
        monkeypatch.setattr(limits, "SECONDS", 0.2)
        with pytest.raises(HTTPException) as refused:
            await run(_endless)
        assert refused.value.status_code == 503
        assert "took longer than 0.2 seconds" in refused.value.detail
        monkeypatch.setattr(limits, "SECONDS", 120)
        with pytest.raises(HTTPException, match="the process that did the work ended"):
            await run(_die)
        return first, again, await run(_who)

    first, again, other = anyio.run(ask)
    assert first == again
    assert os.getpid() not in (first, other)
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


def test_errors_of_processes_are_sentences_too() -> None:
    with TestClient(create_app(processes=1), base_url="http://localhost") as served:
        told = sentence(served.post("/api/fit", json={"cells": {"n": [1], "s": [2]}}))
        assert told == "s must be ≤ n, got s = 2 with n = 1 at position 0"
        assert sentence(upload(served, "/api/counts", b"", "empty.csv")) == "empty.csv is empty"
        content = served.post("/api/fit", json={"cells": CELLS}).json()
        assert content["answers"] == br.analyse(COUNTS).answers


# Who may ask --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["localhost", "localhost:8765", "127.0.0.1:8765", "[::1]:8765", "10.0.0.7"])
def test_the_page_answers_to_its_own_names(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[", "a b"]
)
def test_other_names_are_refused(client: TestClient, host: str) -> None:
    assert client.get("/", headers={"host": host}).status_code == 421
    named = TestClient(create_app(["lab.example"]), base_url="http://LAB.example:1234")
    assert named.get("/").status_code == 200


def test_pages_of_other_sites_are_refused(client: TestClient) -> None:
    for headers in ({"origin": "http://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"}):
        assert client.post("/api/fit", json={"cells": CELLS}, headers=headers).status_code == 403
    own = client.post("/api/fit", json={"cells": CELLS}, headers={"origin": "http://localhost"})
    assert own.status_code == 200
    assert not any(name.startswith("access-control") for name in own.headers)


def test_a_token_opens_once_by_address_then_by_cookie_or_header() -> None:
    app = create_app(token=TOKEN)
    stranger = TestClient(app, base_url="http://localhost")
    assert stranger.get("/").status_code == 401
    assert stranger.get("/?token=wrong").status_code == 401
    assert stranger.post(f"/api/fit?token={TOKEN}", json={"cells": CELLS}).status_code == 401
    assert stranger.get("/", headers={"authorization": "Bearer ünd".encode()}).status_code == 401
    assert stranger.get("/api/openapi.json", headers={"authorization": f"Bearer {TOKEN}"}).status_code == 200
    first = stranger.get(f"/?token={TOKEN}", follow_redirects=False)
    assert (first.status_code, first.headers["location"]) == (303, "/")
    cookie = first.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert stranger.get("/").status_code == 200


def test_every_answer_carries_the_policy(client: TestClient) -> None:
    for path in ("/", "/page/page.js", "/api/docs", "/api/openapi.json", "/nothing", "/page/../app.py"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "script-src 'self'" in policy
        assert "eval" not in policy
        assert headers["x-content-type-options"] == "nosniff"


def test_only_the_files_of_the_page_are_served(client: TestClient) -> None:
    for name in page_files():
        assert client.get(f"/page/{name}").status_code == 200
    for name in ("app.py", "..%2fapp.py", "%2e%2e/app.py", "%2fetc%2fpasswd"):
        assert client.get(f"/page/{name}").status_code == 404
    assert client.get("/api/fit").json() == {"error": "this address takes another method"}


def test_the_page_and_its_documentation_load_nothing_from_elsewhere(client: TestClient) -> None:
    for text in (client.get("/api/docs").text, *(content.decode() for content in page_files().values())):
        assert set(re.findall(r"[\"'(](?:https?:)?//[^\"'\s)]+", text)) <= {'"http://www.w3.org/2000/svg'}
    schema = client.get("/api/openapi.json").json()
    documented = client.get("/api/docs").text
    assert all(path in documented for path in schema["paths"])
    assert set(re.findall(r'href="#(\w+)"', documented)) <= set(re.findall(r'id="(\w+)"', documented))


def test_the_drawing_library_is_kept_by_the_browser(client: TestClient) -> None:
    response = client.get("/page/vega.js")
    assert "vegaEmbed" in response.text
    assert "immutable" in response.headers["cache-control"]


# The command --------------------------------------------------------------------------------------------


def test_other_machines_need_a_token() -> None:
    for host in ("0.0.0.0", "::", "192.168.1.2", "lab.example"):
        with pytest.raises(br.OptionError, match="would let other machines in; give --token"):
            web_command(host=host)
    with pytest.raises(br.OptionError, match="--token must be at least 16 letters and digits, got 5"):
        web_command(host="0.0.0.0", token="short")


def test_a_port_in_use_is_a_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(br.OptionError, match=f"cannot be served on port {port}"):
            web_command(port=port)
    with pytest.raises(br.OptionError, match="--port must be from 0 to 65535, got 99999999"):
        web_command(port=99999999)


def test_without_the_extra_the_command_says_what_to_install(monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(br.OptionError, match=r"the page needs uvicorn \(pip install 'binreps\[web\]'\)"):
        web_command(port=0)


# What nobody thought of ---------------------------------------------------------------------------------

SCHEMA = schemathesis.openapi.from_asgi("/api/openapi.json", create_app(["testserver"]))


@SCHEMA.parametrize()
@settings(
    max_examples=8,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_no_request_that_the_schema_allows_breaks_the_server(case: Any) -> None:
    # seconds of the clock on a machine that does other things too: a plan has 10 of the processor
    response = case.call(timeout=limits.WAIT)
    assert response.status_code < 500
    assert response.status_code == 200 or response.json()["error"]
