"""The application: the page, its files, and the API under /api.

State lives in the browser. A file whose columns are described is kept in a temporary folder for what is asked
next, until another replaces it, too many others come, or the server ends; any other is removed within its
request. Besides these and the last analyses (counts, no names) nothing is kept.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import ExitStack, asynccontextmanager
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import anyio
from anyio import to_thread
from fastapi import FastAPI, File, Form, Header, UploadFile
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response

from binreps._version import __version__
from binreps.errors import BinrepsError, DataError
from binreps.show.theme import vegalite_version
from binreps.study import datasets
from binreps.tables.leftovers import new_folder
from binreps.web import uploads, work
from binreps.web.answers import Json, misfit, problem
from binreps.web.docs import docs_page
from binreps.web.guard import Guard
from binreps.web.progress import LINES, Followed
from binreps.web.requests import (
    Body,
    CardRequest,
    ExplainRequest,
    FileRequest,
    FitRequest,
    LinesRequest,
    NextRequest,
    PlanRequest,
    PriorRequest,
    ReportRequest,
    ScoreRequest,
)
from binreps.web.runner import Run, Runner

_TYPES = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript"}
_EXAMPLES = {
    "screening": datasets.SCREENING_FILE,
    "readers": datasets.READERS_FILE,
    "wells": datasets.WELLS_FILE,
}
_YEAR = {"cache-control": "private, max-age=31536000, immutable"}

Optional = Annotated[UploadFile | None, File(description="The data, if they were not sent before.")]
UploadId = Annotated[
    str | None, Form(description="The id by which /api/columns kept a file.", max_length=100)
]
SheetName = Annotated[str | None, Form(description="The sheet of a workbook.", max_length=200)]
Accept = Annotated[str, Header(description="application/x-ndjson: be told how far it is.")]
RequestText = Annotated[str, Form(description="JSON as FileRequest describes it.")]


class Problem(Body):
    """What went wrong."""

    error: str


def create_app(hosts: Collection[str] = (), token: str | None = None, *, processes: int = 0) -> Guard:
    """The application behind its guard.

    Parameters
    ----------
    hosts : collection of str
        Names under which the page may be asked for, besides `localhost` and plain addresses.
    token : str, optional
        What everyone must bring; nobody has to if it is not given.
    processes : int
        How many analyses may run at once, each in a process that is stopped if it takes too long. 0: one at
        a time, in a thread of this process, which cannot be stopped.

    Returns
    -------
    ASGI application
    """
    run, kept = Runner(processes), uploads.Uploads()
    sentence = {422: {"model": Problem, "description": "What is wrong, in one sentence."}}
    app = FastAPI(
        title="binreps",
        version=__version__,
        description="Repeated yes/no measurements into calibrated decisions.",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        default_response_class=Json,
        lifespan=partial(_lifespan, run, kept),
        responses={**sentence, 400: sentence[422], 413: sentence[422]},  # type: ignore[dict-item]
    )
    _add_errors(app)
    _add_page(app)
    _add_json(app, run)
    _add_files(app, run, kept)
    return Guard(app, hosts, token)


@asynccontextmanager
async def _lifespan(run: Runner, kept: uploads.Uploads, _: FastAPI) -> AsyncIterator[None]:
    """Load what the first request will need while the browser opens; at the end remove what was sent."""
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run, work.ready)
        yield
        tasks.cancel_scope.cancel()
    run.close()
    kept.close()


def _add_errors(app: FastAPI) -> None:
    """One sentence for every error."""

    @app.exception_handler(BinrepsError)
    async def _refused(_: Request, error: Exception) -> Response:
        return problem(str(error))

    @app.exception_handler(RequestValidationError)
    @app.exception_handler(ValidationError)
    async def _misfit(_: Request, error: Any) -> Response:
        return problem(misfit(error))

    @app.exception_handler(HTTPException)
    async def _other(_: Request, error: Any) -> Response:
        words = {404: "there is nothing here", 405: "this address takes another method"}
        return problem(words.get(error.status_code, str(error.detail)), error.status_code, error.headers)

    @app.exception_handler(Exception)
    async def _mistake(_: Request, error: Exception) -> Response:
        # its words may hold data, its type does not
        return problem(f"unexpected {type(error).__name__}; please report what you asked for", 500)


# The page ----------------------------------------------------------------------------------------------


@cache
def page_files() -> dict[str, bytes]:
    """The files of the page by name, and the colours of the report; nothing else is ever served."""
    own = [one for one in (files("binreps.web") / "page").iterdir() if one.is_file()]
    return {one.name: one.read_bytes() for one in [*own, files("binreps.show") / "pages" / "tokens.css"]}


@cache
def vega() -> bytes:
    """Vega, Vega-Lite and their embedding in one script, from the package that draws the reports."""
    import vl_convert

    return str(vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;", vegalite_version())).encode()


@cache
def _offered() -> bytes:
    """What the page offers, as a module that it imports: it is there before anyone can click."""
    return b"export const offered = " + Json(work.offered()).body + b";\n"


def _add_page(app: FastAPI) -> None:
    """What a browser loads."""

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return Response(page_files()["page.html"], media_type=_TYPES["html"])

    @app.get("/page/{name}", include_in_schema=False)
    async def page_file(name: str) -> Response:
        if name == "vega.js":
            return Response(await to_thread.run_sync(vega), media_type=_TYPES["js"], headers=_YEAR)
        if name == "offered.js":
            return Response(_offered(), media_type=_TYPES["js"])
        if name not in page_files():
            raise HTTPException(404)
        return Response(page_files()[name], media_type=_TYPES[name.rpartition(".")[2]])

    @app.get("/api/examples/{name}.csv", response_class=Response, tags=["files"])
    async def example(name: str) -> Response:
        """The bundled examples, all of them simulated: screening, readers, wells."""
        if name not in _EXAMPLES:
            raise HTTPException(404)
        return Response(_EXAMPLES[name].read_bytes(), media_type="text/csv")

    @app.get("/api/docs", include_in_schema=False)
    async def docs() -> Response:
        return Response(docs_page(app.openapi()), media_type=_TYPES["html"])


# JSON in, JSON out -------------------------------------------------------------------------------------


def _add_json(app: FastAPI, run: Run) -> None:
    """What works on counts."""

    @app.post("/api/fit", tags=["counts"])
    async def fit(request: FitRequest, accept: Accept = "") -> Response:
        """Rates, everyone's score and decision, and the decision table: the summary of an analysis.

        Whoever accepts `application/x-ndjson` gets it as a line `{"answer": …}`, and by leaving stops it.
        """
        return await _told(run, accept, work.fit, request)

    @app.post("/api/score", tags=["counts"])
    async def score(request: ScoreRequest) -> Response:
        """Probability, interval and decision of individuals, new ones or those of the data."""
        return Json(await run(work.score, request))

    @app.post("/api/decision-table", tags=["counts"])
    async def decision_table(request: FitRequest) -> Response:
        """What to answer for the next individual, for every possible result."""
        return Json(await run(work.decide, request))

    @app.post("/api/explain", tags=["counts"])
    async def explain(request: ExplainRequest) -> Response:
        """Why an individual with s positives among n replicates gets its answer, in one sentence."""
        return Json(await run(work.explained, request))

    @app.post("/api/check", tags=["counts"])
    async def check(request: FitRequest) -> Response:
        """What to know before believing the fit."""
        return Json(await run(work.checked, request))

    @app.post("/api/compare", tags=["counts"])
    async def compare(request: FitRequest, accept: Accept = "") -> Response:
        """Every model that the cells allow, which one describes the individuals best, and the verdict."""
        return await _told(run, accept, work.compared_models, request)

    @app.post("/api/next", tags=["counts"])
    async def measure_next(request: NextRequest) -> Response:
        """Which individuals to measure again, if there is a budget of replicates."""
        return Json(await run(work.measured_next, request))

    @app.post("/api/figures", tags=["counts"])
    async def figures(request: FitRequest) -> Response:
        """Every figure of the report as a Vega-Lite specification."""
        return Json(await run(work.drawn, request))

    @app.post("/api/prior", tags=["prior"])
    async def prior(request: PriorRequest) -> Response:
        """From what people can say of a rate to Beta shapes."""
        return Json(await run(work.believed, request))

    @app.post("/api/plan", tags=["plan"])
    async def plan(request: PlanRequest, accept: Accept = "") -> Response:
        """How many individuals and replicates make the interval of the prevalence as narrow as wished.

        Whoever accepts `application/x-ndjson` gets lines: how far it is, and at last `{"answer": …}`.
        """
        return await _told(run, accept, work.planned, request)

    @app.post("/api/lines", tags=["files"])
    async def lines(request: LinesRequest) -> Response:
        """The command and the Python that repeat an analysis of a file."""
        return Json(await run(work.lines, request))


async def _told(run: Run, accept: str, function: Callable[..., Any], request: Body) -> Response:
    """The answer at once, or how far it is before it, for those who can be told."""
    if accept == LINES:
        return Followed(run, function, request)
    return Json(await run(function, request))


# Files -------------------------------------------------------------------------------------------------


def _add_files(app: FastAPI, run: Run, kept: uploads.Uploads) -> None:
    """What takes a file, or gives one."""
    asked = partial(_with_file, run, kept)

    @app.post("/api/columns", tags=["files"])
    async def columns(file: Optional = None, upload: UploadId = None, sheet: SheetName = None) -> Response:
        """The columns of a file, some of their values, the guess of what they are, and an id to ask it by.

        The file is kept for later requests, in place of the one whose id is given as `upload`; without a
        file it is that one which is described, perhaps another sheet of it.
        """
        if file is None:
            if upload is None:
                raise DataError("file: send one, or the id by which it was kept as upload")
            return Json({"id": upload, **await asked(None, upload, uploads.describe, sheet)})
        title = uploads.shown_name(file.filename)
        key = await to_thread.run_sync(kept.add, file.file, title)
        try:
            described = await asked(None, key, uploads.describe, sheet)
        except BaseException:
            kept.drop(key)
            raise
        kept.drop(upload)
        return Json({"id": key, **described})

    @app.post("/api/counts", tags=["files"])
    async def counts(request: RequestText = "{}", file: Optional = None, upload: UploadId = None) -> Response:
        """The counts of a file, as the cells that the other requests take, and its individuals if few."""
        if file is None and upload is None:
            raise DataError("file: send one, or the id by which it was kept as upload")
        return Json(await asked(file, upload, uploads.read_cells, FileRequest.model_validate_json(request)))

    @app.post("/api/scores", tags=["files"], response_class=Response)
    async def scores(request: RequestText = "{}", file: Optional = None, upload: UploadId = None) -> Response:
        """Everyone's score and decision, as CSV; without a file, those of the request's cells."""
        folder = await to_thread.run_sync(new_folder, "binreps-web")
        gone = BackgroundTask(folder.cleanup)
        try:
            target = Path(folder.name, "scores.csv")
            chosen = FileRequest.model_validate_json(request)
            await asked(file, upload, partial(work.write_scores, target), chosen)
        except BaseException:
            folder.cleanup()
            raise
        kind = "text/csv; charset=utf-8"
        return FileResponse(target, media_type=kind, filename="scores.csv", background=gone)

    @app.post("/api/report", tags=["files"], response_class=Response)
    async def report(request: RequestText = "{}", file: Optional = None, upload: UploadId = None) -> Response:
        """The report, as one HTML page that needs no network."""
        content = await asked(file, upload, work.written_report, ReportRequest.model_validate_json(request))
        return _download(content, _TYPES["html"], "report.html")

    @app.post("/api/card", tags=["files"], response_class=Response)
    async def card(request: RequestText = "{}", file: Optional = None, upload: UploadId = None) -> Response:
        """A card for the bedside: enter s of n, read the answer; one HTML page that needs no network."""
        content = await asked(file, upload, work.written_card, CardRequest.model_validate_json(request))
        return _download(content, _TYPES["html"], "card.html")

    @app.post("/api/summary", tags=["files"])
    async def summary(
        request: RequestText = "{}", file: Optional = None, upload: UploadId = None
    ) -> Response:
        """The summary that `binreps analyse` writes, which `binreps score` takes as its model."""
        return Json(await asked(file, upload, work.written_summary, FileRequest.model_validate_json(request)))


async def _with_file(
    run: Run,
    kept: uploads.Uploads,
    file: UploadFile | None,
    upload: str | None,
    function: Callable[..., Any],
    *request: Any,
) -> Any:
    """The answer of a function to a request and a file: one that was kept, or sent now and then removed."""
    with ExitStack() as stack:
        if upload is not None and file is None:
            path, title = stack.enter_context(kept.using(upload))
            return await run(function, *request, path, title)
        if file is None:
            return await run(function, *request, None, "")
        title = uploads.shown_name(file.filename)
        path = await to_thread.run_sync(stack.enter_context, uploads.saved(file.file, title))
        return await run(function, *request, path, title)


def _download(content: bytes, kind: str, name: str) -> Response:
    """A file to keep."""
    return Response(
        content, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'}
    )
