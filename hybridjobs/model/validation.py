"""From pydantic's findings to the project's errors: each with its file, key, value and remedy."""

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final, TypeVar, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from hybridjobs.model.errors import SpecError, SpecProblem, shown, suggestion

_REFUSED: Final = "refused"
_SEVERAL_REFUSED: Final = "several_refused"

_WANTED: Final[Mapping[str, str]] = {
    "string_type": "a string",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "dict_type": "a table",
    "mapping_type": "a table",
    "model_type": "a table",
    "tuple_type": "an array",
    "list_type": "an array",
}


class Declaration(BaseModel):
    """A table of one of the project's TOML files: immutable, without type coercion, and closed to unknown keys.

    `remedies` says what to do about unknown keys that users bring along from elsewhere, `missing` what to write for
    a required key.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    remedies: ClassVar[Mapping[str, str]] = {}
    missing: ClassVar[Mapping[str, str]] = {}


Table = TypeVar("Table", bound=Declaration)


def refuse(problem: str, remedy: str) -> PydanticCustomError:
    """Make the error that a field's validator raises."""
    return PydanticCustomError(_REFUSED, "{problem}. {remedy}", {"problem": problem, "remedy": remedy})


def refuse_several(problems: Iterable[SpecProblem]) -> PydanticCustomError:
    """Make the error that a model's validator raises for rules over several fields; keys are relative to the model."""
    listed = list(problems)
    return PydanticCustomError(
        _SEVERAL_REFUSED, "{text}", {"text": "; ".join(str(problem) for problem in listed), "problems": listed}
    )


def read_toml(file: Path) -> dict[str, Any]:
    """Read a TOML file; raises SpecError when it cannot be read or is not TOML in UTF-8, then with line and column."""
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"this is not valid TOML: {error}", file=str(file), remedy="Correct the file there") from error
    except UnicodeDecodeError as error:
        raise SpecError(f"this is not UTF-8: {error}", file=str(file), remedy="Save the file as UTF-8") from error
    except RecursionError as error:
        raise SpecError("this nests too deeply", file=str(file), remedy="Write fewer brackets in each other") from error
    except OSError as error:
        raise SpecError(
            f"this cannot be read: {error.strerror}", file=str(file), remedy="Make it a file that you may read"
        ) from error


def validated(model: type[Table], table: object, *, file: str, prefix: str = "") -> Table:
    """Validate `table` as `model`; `prefix` is the key under which the table stands in `file`.

    Raises one SpecError with every problem found.
    """
    try:
        return model.model_validate(table)
    except ValidationError as error:
        raise SpecError.of(_problems(error, model, file=file, prefix=prefix)) from error


def toml_key(*parts: str) -> str:
    """Write a dotted TOML key, with quotes around the parts that need them."""
    return ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else shown(part) for part in parts)


def _problems(error: ValidationError, model: type[Declaration], *, file: str, prefix: str) -> Iterator[SpecProblem]:
    for details in error.errors(include_url=False):
        context = details.get("ctx", {})
        key = toml_key(*(str(part) for part in details["loc"] if part != "[key]"))
        key = ".".join(part for part in (prefix, key) if part)
        if details["type"] == _SEVERAL_REFUSED:
            for problem in context["problems"]:
                yield problem.at(file=file, prefix=key)
        elif details["type"] == _REFUSED:
            yield SpecProblem(
                problem=context["problem"],
                remedy=context["remedy"],
                file=file,
                key=key or None,
                value=details["input"],
            )
        else:
            yield _built_in_problem(details, model, file=file, key=key)


def _built_in_problem(details: ErrorDetails, model: type[Declaration], *, file: str, key: str) -> SpecProblem:
    """Put a finding of pydantic's own into words."""
    kind, value = details["type"], details["input"]
    name = str(details["loc"][-1]) if details["loc"] else ""
    owner = _model_at(model, details["loc"][:-1])
    if kind == "missing":
        remedy = (owner.missing.get(name) if owner else None) or f"Write {name} = ..."
        return SpecProblem(problem="this key is required and missing", remedy=remedy, file=file, key=key)
    if kind == "extra_forbidden":
        # The name comes from the table's or the file's own name.
        known = [field for field in owner.model_fields if field != "name"] if owner else []
        remedy = (owner.remedies.get(name) if owner else None) or suggestion(name, known, noun="key")
        return SpecProblem(problem="there is no such key", remedy=remedy, file=file, key=key, value=value)
    if kind == "literal_error":
        expected = str(details["ctx"]["expected"])
        return SpecProblem(
            problem="this is not one of the values it can have",
            remedy=f"Write {expected.replace(chr(39), chr(34))}",
            file=file,
            key=key,
            value=value,
        )
    wanted = _WANTED.get(kind)
    if wanted is None:
        return SpecProblem(problem=details["msg"], remedy="Correct the value", file=file, key=key, value=value)
    return SpecProblem(
        problem=f"this must be {wanted}",
        remedy=f"Write {wanted}",
        file=file,
        key=key or None,
        value=value,
    )


def _model_at(model: type[Declaration], location: tuple[int | str, ...]) -> type[Declaration] | None:
    """Find the model of the table at `location` below `model`, None when there is a plain mapping."""
    for part in location:
        field = model.model_fields.get(str(part))
        if field is None:
            return None
        candidates = (field.annotation, *get_args(field.annotation))
        nested = [each for each in candidates if isinstance(each, type) and issubclass(each, Declaration)]
        if not nested:
            return None
        model = nested[0]
    return model
