"""The project's errors.

ProjectError            anything the project refuses or fails at, with a message meant for its user
`- SpecError            a declaration (jobs.toml, stages/<stage>.toml) is wrong, or would waste money
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Final

from hybridjobs.model.credentials import holds_a_credential, names_a_secret

LONGEST_SHOWN_VALUE: Final = 120


class _Absent:
    """The value of a key that was not given."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()


class ProjectError(Exception):
    """Something the user can act on; the message says what was wrong, with which value, and what to do."""


@dataclass(frozen=True)
class SpecProblem:
    """One wrong statement in a declaration: where it stands, its value, why it is wrong and what to write instead.

    `value` is ABSENT where there is none to show. `problem` and `remedy` are sentences, their last full stop may be
    left out. A value that looks like a credential is never shown. `details`, such as a table, follow on lines of
    their own.
    """

    problem: str
    remedy: str
    file: str | None = None
    key: str | None = None
    value: object = ABSENT
    details: str = ""

    def __str__(self) -> str:
        statement = self.key or ""
        if self.key and self.value is not ABSENT:
            secret = names_a_secret(self.key.rpartition(".")[2])
            statement = f"{self.key} = {'(hidden)' if secret else shown(self.value)}"
        place = ": ".join(part for part in (self.file, statement) if part)
        text = f"{_sentence(self.problem)} {_sentence(self.remedy)}"
        return (f"{place}: {text}" if place else text) + (f"\n{self.details}" if self.details else "")

    def at(self, *, file: str, prefix: str) -> "SpecProblem":
        """Place the problem in `file`, below the key `prefix`."""
        key = ".".join(part for part in (prefix, self.key) if part)
        return replace(self, file=file, key=key or None)


class SpecError(ProjectError):
    """Raised when a declaration is wrong; the message reads `FILE: KEY = VALUE: PROBLEM. REMEDY.`.

    An error may report several problems at once: `problems` holds all of them, while `problem`, `file`, `key`,
    `value` and `remedy` are those of the first.
    """

    def __init__(
        self,
        problem: str,
        *,
        file: str | None = None,
        key: str | None = None,
        value: object = ABSENT,
        remedy: str,
        details: str = "",
    ) -> None:
        problems = (SpecProblem(problem=problem, remedy=remedy, file=file, key=key, value=value, details=details),)
        self._set(problems)

    @classmethod
    def of(cls, problems: Iterable[SpecProblem]) -> "SpecError":
        """Make one error of all `problems`, which must not be empty."""
        error = cls.__new__(cls)
        error._set(tuple(problems))
        return error

    def _set(self, problems: tuple[SpecProblem, ...]) -> None:
        first = problems[0]
        self.problems = problems
        self.problem, self.remedy = first.problem, first.remedy
        self.file, self.key, self.value = first.file, first.key, first.value
        if len(problems) == 1:
            message = str(first)
        else:
            message = "\n".join([f"{len(problems)} problems:", *(f"  {problem}" for problem in problems)])
        super().__init__(message)


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?")) else f"{text}."


def shown(value: object) -> str:
    """Write `value` as in a TOML file, cut after LONGEST_SHOWN_VALUE characters; a credential is hidden."""
    try:
        text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    except (TypeError, ValueError):
        text = str(value)
    if holds_a_credential(text):
        return "(hidden)"
    return text if len(text) <= LONGEST_SHOWN_VALUE else f"{text[:LONGEST_SHOWN_VALUE]}... ({len(text)} characters)"


def closest(word: str, candidates: Iterable[str]) -> str | None:
    """Find the candidate that `word` was probably meant to be, or None when nothing is near."""
    by_lower_case = {candidate.lower(): candidate for candidate in candidates}
    matches = get_close_matches(word.lower(), by_lower_case, n=1, cutoff=0.6)
    return by_lower_case[matches[0]] if matches else None


def suggestion(word: str, candidates: Sequence[str], *, noun: str) -> str:
    """Phrase the remedy for an unknown `word`: the closest candidate if there is one, else all of them."""
    match = closest(word, candidates)
    if match is not None:
        return f"Did you mean {shown(match)}?"
    if not candidates:
        return f"There is no {noun} to choose from"
    return f"Known {noun}s: {', '.join(sorted(candidates))}"
