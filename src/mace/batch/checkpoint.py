"""The checkpoint of a batch: a file of JSON lines that a killed run leaves usable."""

from __future__ import annotations

import hashlib
import json
import os
from array import array
from pathlib import Path
from typing import Any

from mace.certify.certificate import Certificate
from mace.errors import InvalidOption
from mace.explanation import Explanation
from mace.space import Point

VERSION = 1
KIND = "mace batch"
ABSENT = -1


class Checkpoint:
    """Answers on disk by row number: a head with the question, then a line an answer, in the order in which they came.

    A line is one write at the end of the file, so a kill leaves at most the last one torn; it is cut off. In memory there are eight
    bytes a row, where its line begins.

    Parameters
    ----------
    path : path
        Made where it does not exist.
    question : dict
        Model, space and question as plain data. A file of another one is refused.

    Raises
    ------
    InvalidOption
        The file is no checkpoint, one of another question, or in use by another run.
    """

    def __init__(self, path: str | os.PathLike[str], question: dict[str, Any]) -> None:
        self.path = Path(path)
        self._starts = array("q")
        head = {"kind": KIND, "version": VERSION, "question": digest(question)}
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        except OSError as error:
            raise InvalidOption(f"checkpoint: cannot write {self.path}: {error.strerror}.") from error
        try:
            self._lock()
            self._take_up(head)
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # not a POSIX system: two runs on one file are up to the user there
            return
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise InvalidOption(f"checkpoint: {self.path} is in use by another run.") from error

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
                    self._note(self._parsed(line)["row"], end)
                end += len(line)
        os.ftruncate(self._file, end)
        self._end = end
        if end == 0:
            self._append(head)

    def _check(self, line: bytes, head: dict[str, Any]) -> None:
        found = self._parsed(line)
        if found.get("kind") != KIND or found.get("version") != VERSION:
            raise InvalidOption(
                f"checkpoint: {self.path} is not a checkpoint of version {VERSION}. Choose another file, or remove it."
            )
        if found["question"] != head["question"]:
            raise InvalidOption(
                f"checkpoint: {self.path} holds answers to another question: the model, the space, the target, the distance, the "
                "constraints or a limit differ. Choose another file, or remove it."
            )

    def _parsed(self, line: bytes) -> dict[str, Any]:
        try:
            parsed = json.loads(line)
        except ValueError as error:
            raise InvalidOption(
                f"checkpoint: {self.path} has a damaged line ({error}). Remove that line, or the file."
            ) from error
        if not isinstance(parsed, dict):
            raise InvalidOption(f"checkpoint: {self.path} is not a checkpoint. Choose another file, or remove it.")
        return parsed

    def _note(self, number: int, start: int) -> None:
        if number >= len(self._starts):
            self._starts.extend([ABSENT] * (number + 1 - len(self._starts)))
        self._starts[number] = start

    def _append(self, entry: dict[str, Any]) -> None:
        line = json.dumps(entry, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        written = os.write(self._file, line)
        while written < len(line):  # a full pipe or disk; the rest follows, or the error says so
            written += os.write(self._file, line[written:])
        self._end += len(line)

    def get(self, number: int, point: Point) -> Explanation | None:
        """Return the answer to a row; ``None`` where there is none yet."""
        if number >= len(self._starts) or self._starts[number] == ABSENT:
            return None
        with open(os.dup(self._file), "rb") as lines:
            lines.seek(self._starts[number])
            entry = self._parsed(lines.readline())
        if entry["key"] != digest(point):
            raise InvalidOption(
                f"checkpoint: row {number} is not the row that {self.path} answers. The data changed; choose another file, or remove it."
            )
        return _explanation(entry)

    def put(self, number: int, point: Point, explanation: Explanation) -> None:
        """Keep an answer."""
        start = self._end
        self._append({"row": number, "key": digest(point), **_entry(explanation)})
        self._note(number, start)

    def close(self) -> None:
        """Make sure that everything is on the disk, and give the file free."""
        os.fsync(self._file)
        os.close(self._file)


def digest(value: object) -> str:
    """Return a short name of plain data: of a question, or of a row."""
    text = json.dumps(value, sort_keys=True, default=repr)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _entry(explanation: Explanation) -> dict[str, Any]:
    certificates = [explanation.certificate, *(counterfactual.certificate for counterfactual in explanation)]
    entry: dict[str, Any] = {"explanation": explanation.to_dict()}
    if any(certificate is not None for certificate in certificates):
        entry["certificates"] = [None if each is None else json.loads(each.to_json()) for each in certificates]
    return entry


def _explanation(entry: dict[str, Any]) -> Explanation:
    from dataclasses import replace

    explanation = Explanation.from_dict(entry["explanation"])
    if "certificates" not in entry:
        return explanation
    whole, *each = (None if data is None else Certificate.from_json(json.dumps(data)) for data in entry["certificates"])
    counterfactuals = tuple(replace(one, certificate=own) for one, own in zip(explanation, each, strict=True))
    return replace(explanation, counterfactuals=counterfactuals, certificate=whole)
