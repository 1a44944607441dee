"""What goes wrong in a launch, said so that whoever reads the stack's events knows what to do."""

from __future__ import annotations


class LaunchError(Exception):
    """Raised when a launch can't be made: the problem, and the remedy."""

    def __init__(self, problem: str, *, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem.rstrip('.')}. {remedy.rstrip('.')}.")


class ConflictingWrite(Exception):  # noqa: N818 - an expected outcome of a conditional write, not a failure
    """Raised when a ledger item is no longer what the writer had read."""
