"""One service for all quick tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from running_service import Service, running


@pytest.fixture(scope="package")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Give a service that ends with this folder: tests elsewhere move the clock, by which its event loop would wait for ever."""
    with running(tmp_path_factory.mktemp("jobs")) as made:
        yield made


@pytest.fixture
def client(service: Service) -> Iterator[httpx.Client]:
    with service.client() as made:
        yield made
