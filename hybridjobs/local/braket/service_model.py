"""The Braket service model as botocore ships it: operations with their routes, shapes and error statuses.

Everything that the model says is read from it at run time, so that a newer botocore brings its operations and limits
with it.
"""

from dataclasses import dataclass
from functools import cache
from urllib.parse import unquote

from botocore.loaders import Loader
from botocore.model import OperationModel, ServiceModel

# Errors that this endpoint answers although the service model has no shape for them.
_STATUS_OUTSIDE_THE_MODEL = {
    "MissingAuthenticationTokenException": 403,
    "NotImplementedException": 501,
    "UnknownOperationException": 404,
}


@dataclass(frozen=True)
class Route:
    """One operation's place in the URL space; a segment `{name}` takes one percent-encoded path segment."""

    method: str
    segments: tuple[str, ...]
    operation: OperationModel

    def match(self, method: str, segments: tuple[str, ...]) -> dict[str, str] | None:
        """Return the values of the labels, decoded, or None where method or path differ."""
        if method != self.method or len(segments) != len(self.segments):
            return None
        labels: dict[str, str] = {}
        for expected, given in zip(self.segments, segments, strict=True):
            if expected.startswith("{"):
                labels[expected[1:-1]] = unquote(given)
            elif expected != given:
                return None
        return labels


class BraketModel:
    """Answers what the service model knows: routes, error statuses."""

    def __init__(self) -> None:
        self.service = ServiceModel(Loader().load_service_model("braket", "service-2"))
        self._routes = tuple(self._route(self.service.operation_model(name)) for name in self.service.operation_names)

    @staticmethod
    def _route(operation: OperationModel) -> Route:
        path = operation.http["requestUri"].split("?")[0]
        return Route(operation.http["method"], tuple(path.strip("/").split("/")), operation)

    def find(self, method: str, raw_path: str) -> tuple[OperationModel, dict[str, str]] | None:
        """Return the operation at `method` and the still percent-encoded `raw_path`, with its path labels."""
        segments = tuple(raw_path.strip("/").split("/"))
        for route in self._routes:
            labels = route.match(method, segments)
            if labels is not None:
                return route.operation, labels
        return None

    def error_status(self, code: str) -> int:
        """Return the HTTP status of the error `code`; KeyError for a name that neither the model nor we know."""
        if code in _STATUS_OUTSIDE_THE_MODEL:
            return _STATUS_OUTSIDE_THE_MODEL[code]
        status: int = self.service.shape_for(code).metadata["error"]["httpStatusCode"]
        return status


@cache
def braket_model() -> BraketModel:
    """Load the model once a process."""
    return BraketModel()
