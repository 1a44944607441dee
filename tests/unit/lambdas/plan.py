"""What goes wrong in the calls of AWS."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.unit.lambdas.fake_braket import STATUS_OF


class Plan:
    """Says for each call whether it goes well.

    `before` and `after` are called with an operation's name and the number of the call, from 0. They may raise;
    `before` may also return the code and HTTP status of an error to answer with, and then the call has no effect.
    """

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.message = "refused"
        self.heal()

    def heal(self) -> None:
        """Let everything go well from now on."""
        self.before: Callable[[str, int], tuple[str, int] | None] = lambda _name, _number: None
        self.after: Callable[[str, int], None] = lambda _name, _number: None

    def refuse(self, operation: str, code: str, *, times: int = 1_000_000, message: str = "refused") -> None:
        """Answer the next calls of an operation with an error."""
        left = [times]
        self.message = message

        def before(name: str, _: int) -> tuple[str, int] | None:
            if name != operation or left[0] == 0:
                return None
            left[0] -= 1
            return code, STATUS_OF.get(code, 400)

        self.before = before

    def called(self, operation: str) -> dict[str, Any] | None:
        """Take note of a call; returns the error that it is answered with, if it is."""
        number = len(self.calls)
        self.calls.append(operation)
        refused = self.before(operation, number)
        if refused is None:
            return None
        code, status = refused
        return {
            "Error": {"Code": code, "Message": self.message},
            "ResponseMetadata": {"HTTPStatusCode": status, "HTTPHeaders": {}},
        }

    def answered(self, operation: str) -> None:
        """Take note of the answer to the latest call."""
        self.after(operation, len(self.calls) - 1)
