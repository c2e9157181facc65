"""A worker: a process that reads the model once and answers one request after the other."""

from __future__ import annotations

import json
import os
import signal
import traceback
from multiprocessing.connection import Connection
from typing import Any

from mace.errors import MaceError
from mace.service.answers import Handler
from mace.service.messages import DONE, FAILED, NOT_THERE, PROGRESS, READY, REFUSED, STOP, STOPPED
from mace.service.opened import open_source
from mace.service.people import NoSuchPerson
from mace.service.source import Served
from mace.solvers.compiling import as_worker


class GivenUp(Exception):
    """Nobody waits for the answer any more."""


def run(source: Served, pipe: Connection, *, warm: bool) -> None:
    """Answer what comes through a pipe until it is closed.

    Parameters
    ----------
    source : Served
        What is served.
    pipe : Connection
        Requests ``(number, task, data)`` in, ``(number, kind, what)`` out; an answer is JSON in bytes.
    warm : bool
        Whether to ask a first question before saying that all is ready.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with as_worker():
        try:
            handler = Handler(open_source(source))
            if warm:
                handler.ready()
        except MaceError as error:
            pipe.send((0, REFUSED, (type(error).__name__, str(error))))
            return
        except Exception as error:
            pipe.send((0, FAILED, told(error)))
            return
        pipe.send((0, READY, None))
        while True:
            try:
                number, task, given = pipe.recv()
            except (EOFError, OSError):
                return
            if task != STOP:
                pipe.send((number, *_answered(handler, pipe, number, task, given)))


def _answered(handler: Handler, pipe: Connection, number: int, task: str, given: dict[str, Any]) -> tuple[str, Any]:
    """Return how a request ended."""

    def report(progress: dict[str, Any]) -> None:
        while pipe.poll():
            if pipe.recv()[1] == STOP:
                raise GivenUp
        pipe.send((number, PROGRESS, progress))

    try:
        made = getattr(handler, task)(given, report)
        return DONE, json.dumps(made, ensure_ascii=False, allow_nan=False).encode()
    except GivenUp:
        return STOPPED, None
    except MaceError as error:
        return REFUSED, (type(error).__name__, str(error))
    except NoSuchPerson as error:
        return NOT_THERE, str(error)
    except (BrokenPipeError, EOFError):
        os._exit(1)
    except Exception as error:
        return FAILED, told(error)


def told(error: BaseException) -> str:
    """Return where an error of ours was raised, without any value: what it says may hold a person's data."""
    places = traceback.extract_tb(error.__traceback__)
    return f"{type(error).__name__} at " + " < ".join(
        f"{os.path.basename(p.filename)}:{p.lineno}" for p in places[:-6:-1]
    )
