"""What the service and its workers say to each other."""

from __future__ import annotations

READY, PROGRESS, DONE, STOPPED = "ready", "progress", "done", "stopped"
"""What a worker sends: the model is read; how far a request is; its answer; that it was given up."""

REFUSED, NOT_THERE, FAILED = "refused", "absent", "failed"
"""The same: the request is at fault; what it names is not there; MACE is at fault."""

STOP = "stop"
"""What is sent to a worker while it answers: nobody waits for the answer any more."""
