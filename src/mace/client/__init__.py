"""A client of the service (``mace serve``): the same questions and answers as :class:`mace.Explainer`, over HTTP."""

from mace.client.asking import Client, Prediction, RunningJob
from mace.errors import ServiceError

__all__ = ["Client", "Prediction", "RunningJob", "ServiceError"]
