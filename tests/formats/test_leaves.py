"""The shared walk: every string and every key, in document order, at any depth."""

from __future__ import annotations

from hypothesis import given

from coatcheck.domain.canonical import JsonValue, value_at
from coatcheck.domain.messages import Field
from coatcheck.formats.leaves import strings, walk
from tests.formats.looking import PIXEL, string_leaves
from tests.formats.strategies import json_values


@given(json_values())
def test_every_string_is_a_leaf_once_and_in_order(value: JsonValue) -> None:
    found = [field.path for field in walk(value, ()) if not field.is_key]

    assert found == list(string_leaves(value))


@given(json_values())
def test_a_string_has_the_same_class_with_and_without_its_path(value: JsonValue) -> None:
    walked = [(value_at(value, field.path), field.field_class) for field in walk(value, ()) if not field.is_key]

    assert sorted(walked, key=repr) == sorted(strings(value), key=repr)


@given(json_values())
def test_every_key_is_a_leaf_just_before_what_stands_under_it(value: JsonValue) -> None:
    fields = list(walk(value, ()))

    for position, field in enumerate(fields):
        if field.is_key and isinstance(value_at(value, field.path), str):
            assert fields[position + 1] == Field(field.path, fields[position + 1].field_class)


def test_a_key_comes_before_its_value() -> None:
    assert [(field.path, field.is_key) for field in walk({"a": {"b": "c"}, "d": ["e"]}, ("x",))] == [
        (("x", "a"), True),
        (("x", "a", "b"), True),
        (("x", "a", "b"), False),
        (("x", "d"), True),
        (("x", "d", 0), False),
    ]


def test_data_beside_the_media_type_of_an_image_is_a_blob_and_beside_that_of_a_text_it_is_not() -> None:
    image = {field.path: field.field_class for field in walk({"mimeType": "image/png", "data": PIXEL}, ()) if not field.is_key}
    plain = {field.path: field.field_class for field in walk({"mimeType": "text/plain", "data": PIXEL}, ()) if not field.is_key}

    assert (image[("data",)], plain[("data",)]) == ("blob", "content")


def test_a_deep_value_does_not_exhaust_the_stack() -> None:
    deep: JsonValue = "x"
    for _ in range(20_000):
        deep = [deep]

    assert len(list(walk(deep, ()))) == 1
