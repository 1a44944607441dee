from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from tests.unit.lambdas.fake_braket import STATUS_OF
from tests.unit.lambdas.stage import Stage, StageClients


@pytest.fixture(scope="module")
def clients() -> Iterator[StageClients]:
    with mock_aws():
        yield StageClients()


@pytest.fixture
def stage(clients: StageClients) -> Stage:
    return Stage(clients)


@pytest.fixture
def client_error() -> Callable[[str, str], Exception]:
    def make(code: str, message: str) -> Exception:
        answer: Any = {
            "Error": {"Code": code, "Message": message},
            "ResponseMetadata": {"HTTPStatusCode": STATUS_OF.get(code, 400)},
        }
        return ClientError(answer, "CreateJob")

    return make
