"""The application: addresses, bodies and answers; what is asked goes to the workers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from fastapi import Path as PathParameter
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import FileResponse, JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.staticfiles import StaticFiles

import mace
from mace.disk import parse_json
from mace.service import bodies
from mace.service.backend import Backend
from mace.service.guard import Access, Guard, Refusal
from mace.service.jobs import RESULTS, Job
from mace.service.pool import Unanswered

PAGE = Path(__file__).parent / "page"
"""The files of the page."""

HEARTBEAT = 10.0
"""Seconds after which a silent stream says that it is alive."""

JobName = Annotated[str, PathParameter(max_length=64)]
SUFFIXES = {"text/csv": ".csv", "application/vnd.apache.parquet": ".parquet"}
"""The files that a batch takes, by content type."""

MEDIA = {suffix: kind for kind, suffix in SUFFIXES.items()} | {
    ".jsonl": "application/x-ndjson",
    ".json": "application/json",
    ".html": "text/html",
}
FILE_SCHEMA = {
    "requestBody": {
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in SUFFIXES},
        "required": True,
    }
}

ERRORS: dict[int | str, dict[str, Any]] = {
    number: {"description": text, "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}}}
    for number, text in {
        400: "The body is not JSON.",
        401: "A key is needed.",
        403: "A page of another origin asks.",
        404: "There is no such thing.",
        409: "Not in this state.",
        413: "The body is too large.",
        415: "The content type is none that is taken.",
        421: "The host is none of ours.",
        422: "The question cannot be asked so.",
        429: "The queue is full.",
        503: "Nothing was answered.",
    }.items()
}


class StrictRequest(Request):
    """A request whose JSON is read as all JSON of MACE is: no NaN, no key twice, no endless numbers or depths."""

    async def json(self) -> Any:
        """Return the body."""
        if not hasattr(self, "_json"):
            try:
                self._json = parse_json(await self.body())
            except (ValueError, UnicodeDecodeError) as error:
                raise json.JSONDecodeError(str(error)[:200], "", 0) from error
        return self._json


class StrictRoute(APIRoute):
    """A route that reads its body so."""

    def get_route_handler(self) -> Callable[[Request], Awaitable[Response]]:  # type: ignore[override]
        """Return the handler."""
        handle = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return strict


def make_app(backend: Backend, access: Access) -> Guard:
    """Return the application of a service."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await backend.start()
        try:
            yield
        finally:
            await backend.stop()

    app = FastAPI(
        title="MACE",
        version=mace.__version__,
        summary="Nearest counterfactual explanations, proved nearest.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        responses=ERRORS,
        separate_input_output_schemas=False,
    )
    app.router.route_class = StrictRoute
    _add_probes(app, backend)
    _add_questions(app, backend)
    _add_jobs(app, backend)
    _add_errors(app)
    _describe_errors(app)
    app.mount("/", StaticFiles(directory=PAGE, html=True, check_dir=False), name="page")
    return Guard(app, access, backend.metrics)


def as_json(content: bytes) -> Response:
    """Return an answer that a worker has written already."""
    return Response(content, media_type="application/json")


def _add_probes(app: FastAPI, backend: Backend) -> None:
    @app.get("/health", summary="Whether the process lives")
    async def health() -> dict[str, str]:
        return {"status": "alive"}

    @app.get("/ready", summary="Whether questions are answered")
    async def ready() -> dict[str, Any]:
        return backend.ready()

    @app.get("/metrics", summary="Figures for Prometheus", response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(backend.metrics.text(backend.gauges()), media_type="text/plain; version=0.0.4")


def _add_questions(app: FastAPI, backend: Backend) -> None:
    @app.get("/v1/model", summary="The model, its features, its people in summary, the rules in force")
    async def model() -> Response:
        return as_json(await backend.about())

    @app.post("/v1/predict", summary="Decision and score of rows")
    async def predict(body: bodies.PredictBody, request: Request) -> Response:
        return as_json(await while_there(request, backend.quickly("predict", body.plain())))

    @app.get("/v1/people", summary="The people of the data, a page at a time")
    async def people(asked: Annotated[bodies.PeoplePage, Query()]) -> Response:
        return as_json(await backend.quickly("list_people", asked.model_dump()))

    @app.post("/v1/people", summary="The same, searched: what is searched for stands in no address")
    async def search_people(body: bodies.PeopleBody) -> Response:
        return as_json(await backend.quickly("list_people", body.model_dump()))

    @app.get("/v1/people/{number}", summary="One person")
    async def person(number: Annotated[int, PathParameter(ge=0, le=10**9)]) -> Response:
        return as_json(await backend.quickly("person", {"number": number}))

    @app.post("/v1/explain", summary="The nearest counterfactuals of a row")
    async def explain(body: bodies.ExplainBody, request: Request) -> Response:
        return as_json(await while_there(request, backend.search("explain", body.plain())))

    @app.post("/v1/levers", summary="The smallest sets of features that suffice")
    async def levers(body: bodies.LeversBody, request: Request) -> Response:
        return as_json(await while_there(request, backend.search("levers", body.plain())))

    @app.post("/v1/reasons", summary="The smallest sets of features whose values alone hold the decision")
    async def reasons(body: bodies.ReasonsBody, request: Request) -> Response:
        return as_json(await while_there(request, backend.search("reasons", body.plain())))

    @app.post("/v1/region", summary="The proved region around a row")
    async def region(body: bodies.RegionBody, request: Request) -> Response:
        return as_json(await while_there(request, backend.search("region", body.model_dump())))

    @app.post("/v1/letter", summary="A letter about a question that is asked anew")
    async def letter(body: bodies.LetterBody, request: Request) -> Response:
        return as_json(await while_there(request, backend.search("letter", body.plain())))

    @app.post("/v1/verify", summary="The verdict about a certificate")
    async def verify(body: bodies.VerifyBody, request: Request) -> Response:
        given = body.model_dump() | {"time_limit": backend.limits.time_limit}
        return as_json(await while_there(request, backend.search("verify", given)))

    @app.post("/v1/explain/stream", summary="The same, with the bounds as they close", response_class=StreamingResponse)
    async def stream(body: bodies.ExplainBody) -> StreamingResponse:
        return StreamingResponse(events(backend, body.plain()), media_type="text/event-stream")


def _add_jobs(app: FastAPI, backend: Backend) -> None:
    jobs = backend.jobs

    def shown(job: Job, status: int = 200) -> JSONResponse:
        return JSONResponse(jobs.shown(job), status)

    @app.post("/v1/batch", summary="A job that explains the rows of a file, which is sent next", status_code=201)
    async def batch(body: bodies.BatchBody, request: Request) -> Response:
        return shown(jobs.create("batch", body.plain(), request.state.owner), 201)

    @app.put(
        "/v1/jobs/{name}/data",
        summary="The file of a batch, CSV or Parquet",
        status_code=202,
        openapi_extra=FILE_SCHEMA,
    )
    async def data(name: JobName, request: Request) -> Response:
        job = jobs.get(name, request.state.owner)
        suffix = SUFFIXES[request.headers["content-type"].partition(";")[0].strip().lower()]
        await jobs.take_file(job, suffix, request.stream())
        return shown(job, 202)

    @app.post("/v1/audit", summary="A job that compares groups of the people", status_code=202)
    async def audit(body: bodies.AuditBody, request: Request) -> Response:
        return shown(jobs.create("audit", body.plain(), request.state.owner), 202)

    @app.get("/v1/jobs/{name}", summary="How far a job is")
    async def job(name: JobName, request: Request) -> Response:
        return shown(jobs.get(name, request.state.owner))

    @app.get("/v1/jobs/{name}/result", summary="The result of a job, as a file", response_class=FileResponse)
    async def result(name: JobName, request: Request, format: str = "") -> Response:  # noqa: A002
        one = jobs.get(name, request.state.owner)
        path = jobs.result(one, format or next(iter(RESULTS[one.kind])))
        return FileResponse(path, media_type=MEDIA[path.suffix], filename=path.name)

    @app.post("/v1/jobs/{name}/cancel", summary="End a job, and keep what it has answered")
    async def cancel(name: JobName, request: Request) -> Response:
        one = jobs.get(name, request.state.owner)
        await jobs.cancel(one)
        return shown(one)

    @app.post("/v1/jobs/{name}/resume", summary="Go on with a job that was cancelled or has failed")
    async def resume(name: JobName, request: Request) -> Response:
        one = jobs.get(name, request.state.owner)
        jobs.resume(one)
        return shown(one)

    @app.delete("/v1/jobs/{name}", summary="Remove a job and its files", status_code=204)
    async def remove(name: JobName, request: Request) -> Response:
        await jobs.remove(jobs.get(name, request.state.owner))
        return Response(status_code=204)


async def events(backend: Backend, given: dict[str, Any]) -> AsyncIterator[bytes]:
    """Yield the events of a question: its bounds as they close, then the answer or an error."""
    queue: asyncio.Queue[bytes] = asyncio.Queue()
    asked = asyncio.ensure_future(
        backend.search(
            "explain",
            given,
            lambda progress: queue.put_nowait(event("progress", json.dumps(progress, allow_nan=False).encode())),
        )
    )
    try:
        while not asked.done() or not queue.empty():
            coming = asyncio.ensure_future(queue.get())
            await asyncio.wait({asked, coming}, timeout=HEARTBEAT, return_when=asyncio.FIRST_COMPLETED)
            if coming.done():
                yield coming.result()
            else:
                coming.cancel()
                if not asked.done():
                    yield b": still searching\n\n"
        try:
            yield event("answer", await asked)
        except Unanswered as error:
            said = {"error": error.error, "message": str(error), "status": error.status}
            yield event("error", json.dumps(said).encode())
    finally:
        asked.cancel()


def event(kind: str, data: bytes) -> bytes:
    """Return a server-sent event; JSON has no line break of its own."""
    return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"


async def while_there(request: Request, work: Awaitable[bytes]) -> bytes:
    """Return what work gives; give it up where the client leaves."""
    task = asyncio.ensure_future(work)
    left = asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        raise HTTPException(499)  # nobody reads it
    finally:
        for each in (task, left):
            each.cancel()
            with suppress(asyncio.CancelledError, Unanswered):
                await each


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


# ---- errors


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(Unanswered)
    async def unanswered(request: Request, error: Unanswered) -> JSONResponse:
        retry = {} if error.retry_after is None else {"Retry-After": str(error.retry_after)}
        return _error(error.status, error.error, str(error), retry)

    @app.exception_handler(Refusal)
    async def refused(request: Request, error: Refusal) -> JSONResponse:
        return _error(error.status_code, error.error, error.detail)

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"][1:] if part != "body")[:200]
        if first["type"] == "json_invalid":
            return _error(400, "InvalidRequest", f"the body is not JSON: {first['ctx']['error']}.")
        said = f"{place}: {first['msg']}" if place else str(first["msg"])
        return _error(422, "InvalidRequest", f"{said}. See /openapi.json for what is taken.")

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> JSONResponse:
        names = {404: "NotFound", 405: "MethodNotAllowed", 400: "InvalidRequest"}
        said = {404: f"there is nothing at {request.url.path[:100]}.", 405: "not with this method."}
        message = said.get(error.status_code, str(error.detail))
        return _error(
            error.status_code, names.get(error.status_code, "InvalidRequest"), message, dict(error.headers or {})
        )


def _error(status: int, error: str, message: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"error": error, "message": message}, status, headers)


def _describe_errors(app: FastAPI) -> None:
    """Put the form of errors into the schema."""
    make = app.openapi

    def schema() -> dict[str, Any]:
        made = make()
        text = {"type": "string"}
        made["components"]["schemas"]["Error"] = {
            "type": "object",
            "title": "Error",
            "required": ["error", "message"],
            "properties": {"error": text, "message": text},
        }
        return made

    app.openapi = schema  # type: ignore[method-assign]
