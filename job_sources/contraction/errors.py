"""Errors of the contraction simulator: each says what was wrong, the value, and what would work.

ContractionError
    UnsupportedCircuitError   the circuit or measurement has no exact, cheap expectation value here
    TooLargeError             the cheapest plan found needs more memory than the limit allows
    MissingLibraryError       an optional library that the chosen way of execution needs is absent
"""


class ContractionError(Exception):
    """Base of every error that this library raises on purpose."""


class UnsupportedCircuitError(ContractionError):
    """A gate, measurement or graph that this simulator can't treat; the message names what can."""


class TooLargeError(ContractionError):
    """Neither contraction nor a state vector fits the limit on bytes; the message has the numbers."""


class MissingLibraryError(ContractionError, ImportError):
    """A library needed by the chosen way of execution isn't installed; the message names it."""
