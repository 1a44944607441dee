"""The WSGI application: finds the operation, checks the request, calls its handler, answers in rest-json."""

import json
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from werkzeug.exceptions import RequestEntityTooLarge
from werkzeug.wrappers import Request, Response

from hybridjobs.local.braket.errors import ServiceError
from hybridjobs.local.braket.protocol import parse_request, serialise_response
from hybridjobs.local.braket.service_model import BraketModel, braket_model

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

Handler = Callable[[dict[str, Any]], Mapping[str, Any]]

MAXIMUM_BODY_BYTES = 16 * 1024 * 1024

_logger = logging.getLogger(__name__)


class BraketApplication:
    """Serves the operations for which it has handlers; the others of the model are answered as not implemented."""

    def __init__(self, handlers: Mapping[str, Handler], model: BraketModel | None = None):
        self._handlers = handlers
        self._model = model or braket_model()

    def __call__(self, environ: "WSGIEnvironment", start_response: "StartResponse") -> Iterable[bytes]:
        """Answer one request."""
        request = Request(environ)
        request.max_content_length = MAXIMUM_BODY_BYTES
        try:
            response = self._answer(request)
        except ServiceError as error:
            response = self._error(error)
        except RequestEntityTooLarge:
            response = self._error(
                ServiceError("ValidationException", f"The request body is larger than {MAXIMUM_BODY_BYTES} bytes")
            )
        except Exception:  # the client must get the service's error shape, and the log the traceback
            _logger.exception("%s %s failed", request.method, request.path)
            response = self._error(
                ServiceError("InternalServiceException", "The local Braket endpoint failed; its log has the traceback")
            )
        response.headers["x-amzn-RequestId"] = str(uuid.uuid4())
        return response(environ, start_response)

    def _answer(self, request: Request) -> Response:
        # Any credentials do, but a request has to be signed: a web page that a browser shows can't send this header
        # to another origin without asking first, so it can't start a job here.
        if not request.headers.get("Authorization", "").startswith("AWS4-"):
            raise ServiceError(
                "MissingAuthenticationTokenException", "The request is not signed; any AWS credentials will do"
            )
        found = self._model.find(request.method, _raw_path(request.environ))
        if found is None:
            raise ServiceError("UnknownOperationException", f"No operation at {request.method} {request.path}")
        operation, labels = found
        parameters = parse_request(operation, labels, list(request.args.items(multi=True)), request.get_data())
        handler = self._handlers.get(operation.name)
        if handler is None:
            raise ServiceError(
                "NotImplementedException", f"{operation.name} is not implemented by the local Braket endpoint"
            )
        body = serialise_response(operation, handler(parameters))
        return Response(body, status=operation.http["responseCode"], content_type="application/json")

    def _error(self, error: ServiceError) -> Response:
        return Response(
            json.dumps({"message": error.message, **error.members}),
            status=self._model.error_status(error.code),
            headers={"x-amzn-ErrorType": error.code},
            content_type="application/json",
        )


def _raw_path(environ: "WSGIEnvironment") -> str:
    """Return the path as it was sent: an ARN in it holds encoded slashes, which WSGI's PATH_INFO has lost."""
    raw: str = environ["RAW_URI"]
    return raw.split("?", 1)[0]
