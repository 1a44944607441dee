import json
import random
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from hybridjobs.model.canonical import canonical_json, spec_hash

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
json_objects = st.dictionaries(st.text(), json_values, max_size=6)


def shuffled(value: Any, order: random.Random) -> Any:
    """Copy a JSON value with the keys of all objects in another order."""
    if isinstance(value, dict):
        keys = list(value)
        order.shuffle(keys)
        return {key: shuffled(value[key], order) for key in keys}
    if isinstance(value, list):
        return [shuffled(item, order) for item in value]
    return value


@settings(deadline=None)
@given(document=json_objects, order=st.randoms(use_true_random=False))
def test_order_of_keys_does_not_matter(document: dict[str, Any], order: random.Random) -> None:
    assert canonical_json(shuffled(document, order)) == canonical_json(document)


@settings(deadline=None)
@given(document=json_objects)
def test_text_is_ascii_without_spaces_and_reads_back_as_the_same_value(document: dict[str, Any]) -> None:
    text = canonical_json(document)

    assert text.isascii()
    assert json.loads(text) == document
    assert text == json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))


@settings(deadline=None)
@given(one=json_objects, other=json_objects)
def test_hash_differs_exactly_when_the_document_does(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert (spec_hash(one) == spec_hash(other)) == (canonical_json(one) == canonical_json(other))


@settings(deadline=None)
@given(document=json_objects, key=st.text(), value=json_values)
def test_changing_one_key_changes_the_hash(document: dict[str, Any], key: str, value: Any) -> None:
    assume(key not in document or canonical_json(document[key]) != canonical_json(value))

    assert spec_hash({**document, key: value}) != spec_hash(document)


def test_hash_is_the_sha256_of_the_text() -> None:
    # sha256 of the nine bytes {"a":[1]}, taken with another tool.
    assert spec_hash({"a": [1]}) == "ff5464c34287e9ec505b9f76573a4cb0bd408c96c6537b458fdd993fc7c615ce"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_lacks_are_refused(number: float) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"x": number})


@pytest.mark.parametrize("document", [{1: "a"}, {"a": {None: 1}}, {"a": [{True: 1}]}])
def test_keys_that_are_no_strings_are_refused(document: dict[Any, Any]) -> None:
    with pytest.raises(TypeError, match="must be a string"):
        canonical_json(document)
