"""The checkpoint of a batch: a file of JSON lines that a killed run leaves usable."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from array import array
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from mace.answer.explanation import Explanation
from mace.batch.rows import BatchRow
from mace.certify.certificate import Certificate
from mace.disk import OWNER_ONLY, lock, parse_json, said
from mace.errors import InvalidOption, MaceError

VERSION = 1
ABSENT = -1

MOST_ROWS_KEPT = 2**27
"""Rows that a checkpoint can hold; each takes eight bytes of memory."""


Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Kept(Generic[Answer]):
    """What a checkpoint keeps of each row.

    Attributes
    ----------
    kind : str
        What its head says that it is.
    part : str
        The part of a line that the answer is in.
    write, read : callable
        An answer as the parts of a line, and back.
    """

    kind: str
    part: str
    write: Callable[[Answer], dict[str, Any]]
    read: Callable[[dict[str, Any]], Answer]


class Checkpoint(Generic[Answer]):
    """Answers on disk by row number, for their owner alone: a head with the question, then a line an answer, as they came.

    A line is one write at the end of the file, so a kill leaves at most the last one torn; it is cut off. In memory there are eight
    bytes a row, where its line begins.

    Parameters
    ----------
    path : path
        Made where it does not exist.
    question : dict
        Model, space and question as plain data. A file of another one is refused.
    kept : Kept
        What kind of answers it has.

    Raises
    ------
    InvalidOption
        The file is no checkpoint, one of another question, or in use by another run.
    """

    def __init__(self, path: str | os.PathLike[str], question: dict[str, Any], kept: Kept[Answer]) -> None:
        self.path = Path(path)
        self._kept = kept
        self._starts = array("q")
        head = {"kind": kept.kind, "version": VERSION, "question": digest(question)}
        # Answers that were made without a time limit are good under any.
        self._unlimited = digest({**question, "time_limit": None})
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, OWNER_ONLY)
            if not stat.S_ISREG(os.fstat(self._file).st_mode):
                os.close(self._file)
                raise OSError("it is a device or a pipe")
        except OSError as error:
            raise InvalidOption(f"checkpoint: cannot write {self.path}: {said(error)}.") from error
        try:
            self._lock()
            self._take_up(head)
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self) -> None:
        if not lock(self._file):
            raise InvalidOption(f"checkpoint: {self.path} is in use by another run.")

    def _take_up(self, head: dict[str, Any]) -> None:
        """Check the head and note where each line begins; cut off a torn last line; write the head of an empty file."""
        end = 0
        with open(os.dup(self._file), "rb") as lines:
            for line in lines:
                if not line.endswith(b"\n"):
                    break
                if end == 0:
                    self._check(line, head)
                else:
                    self._note(self._entry(line)["row"], end)
                end += len(line)
        os.ftruncate(self._file, end)
        self._end = end
        if end == 0:
            self._append(head)

    def _check(self, line: bytes, head: dict[str, Any]) -> None:
        found = self._parsed(line)
        if found.get("kind") != self._kept.kind or found.get("version") != VERSION:
            raise InvalidOption(
                f"checkpoint: {self.path} is not a checkpoint of such a batch, of version {VERSION}. Choose another, or remove it."
            )
        if found.get("question") not in (head["question"], self._unlimited):
            raise InvalidOption(
                f"checkpoint: {self.path} holds answers to another question: the model, the space, the target, the distance, the "
                "constraints or a limit differ. Choose another file, or remove it."
            )

    def _parsed(self, line: bytes) -> dict[str, Any]:
        try:
            parsed = parse_json(line)
        except ValueError as error:
            raise InvalidOption(
                f"checkpoint: {self.path} has a damaged line ({error}). Remove that line, or the file."
            ) from error
        if not isinstance(parsed, dict):
            raise InvalidOption(f"checkpoint: {self.path} is not a checkpoint. Choose another file, or remove it.")
        return parsed

    def _entry(self, line: bytes) -> dict[str, Any]:
        """Return the line of an answer; only what the checkpoint itself needs of it is checked."""
        entry = self._parsed(line)
        row = entry.get("row")
        if type(row) is not int or not 0 <= row < MOST_ROWS_KEPT or not {"key", self._kept.part} <= set(entry):
            raise InvalidOption(
                f"checkpoint: {self.path} has a damaged line (row {row!r:.40}). Remove that line, or the file."
            )
        return entry

    def _note(self, number: int, start: int) -> None:
        if number >= len(self._starts):
            self._starts.extend([ABSENT] * (number + 1 - len(self._starts)))
        self._starts[number] = start

    def _append(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, ensure_ascii=False, allow_nan=False).encode(errors="backslashreplace") + b"\n"
        written = 0
        try:
            while written < len(
                line
            ):  # a disk that is nearly full takes a part; the rest follows, or the error says so
                written += os.write(self._file, line[written:])
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise InvalidOption(
                f"checkpoint: cannot write {self.path}: {said(error)}. The answers in it are kept; make room and go on from there."
            ) from error
        self._end += len(line)

    @property
    def is_new(self) -> bool:
        """Whether no answer is in it yet."""
        return not self._starts

    def get(self, number: int, point: BatchRow) -> Answer | None:
        """Return the answer to a row; ``None`` where there is none yet."""
        if number >= len(self._starts) or self._starts[number] == ABSENT:
            return None
        with open(os.dup(self._file), "rb") as lines:
            lines.seek(self._starts[number])
            entry = self._entry(lines.readline())
        if entry["key"] != digest(point):
            raise InvalidOption(
                f"checkpoint: row {number} is not the row that {self.path} answers. The data changed; choose another file, or remove it."
            )
        try:
            return self._kept.read(entry)
        except MaceError as error:
            raise InvalidOption(
                f"checkpoint: {self.path} has a damaged line ({error}) Remove that line, or the file."
            ) from error

    def put(self, number: int, point: BatchRow, answer: Answer) -> None:
        """Keep an answer."""
        start = self._end
        self._append({"row": number, "key": digest(point), **self._kept.write(answer)})
        self._note(number, start)

    def close(self) -> None:
        """Make sure that everything is on the disk, and give the file free."""
        try:
            os.fsync(self._file)
        except OSError as error:
            raise InvalidOption(f"checkpoint: cannot write {self.path}: {said(error)}.") from error
        finally:
            os.close(self._file)


def digest(value: object) -> str:
    """Return a short name of plain data: of a question, or of a row."""
    text = json.dumps(value, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _entry(explanation: Explanation) -> dict[str, Any]:
    certificates = [explanation.certificate, *(counterfactual.certificate for counterfactual in explanation)]
    entry: dict[str, Any] = {"explanation": explanation.to_dict()}
    if any(certificate is not None for certificate in certificates):
        entry["certificates"] = [None if each is None else each.to_dict() for each in certificates]
    return entry


def _explanation(entry: dict[str, Any]) -> Explanation:
    explanation = Explanation.from_dict(entry["explanation"])
    if "certificates" not in entry:
        return explanation
    kept = entry["certificates"]
    if not isinstance(kept, list) or len(kept) != len(explanation) + 1:
        raise InvalidOption("the certificates are not one for each answer.")
    whole, *each = (None if data is None else Certificate.from_dict(data) for data in kept)
    counterfactuals = tuple(replace(one, certificate=own) for one, own in zip(explanation, each, strict=True))
    return replace(explanation, counterfactuals=counterfactuals, certificate=whole)


EXPLANATIONS = Kept("mace batch", "explanation", _entry, _explanation)
