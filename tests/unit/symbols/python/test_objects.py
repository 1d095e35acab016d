"""Objects of the interpreter that runs the tests, read as those of another process."""

from __future__ import annotations

import os
import sys
import sysconfig
import types
from functools import partial

import pytest

from locktop.collector.linux import process_memory
from locktop.collector.symbols.python.object_layout import layout_of
from locktop.collector.symbols.python.objects import PythonObjects, Types

MANY = {f"key {number}": str(number) for number in range(1000)}


class Plain:
    def __init__(self) -> None:
        self.first, self.second = "one", 2


class Slotted:
    __slots__ = ("first",)

    def __init__(self) -> None:
        self.first = "one"


@pytest.fixture
def objects() -> PythonObjects:
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    layout = layout_of(sys.version_info[:2], free_threaded)
    if layout is None:
        pytest.skip("the layout of this interpreter is not known")
    read_many = partial(process_memory.read_many, os.getpid())
    return PythonObjects(read_many, layout, Types(id(dict), id(str), id(int), id(types.ModuleType)))


@pytest.mark.parametrize("text", ["a", "name", "ünïcode", "名前", "emoji 😀", "x" * 200, ""])
def test_texts_of_all_widths_are_read(objects: PythonObjects, text: str) -> None:
    assert objects.texts([id(text), id(text)]) == [text, text]


def test_a_long_text_is_cut(objects: PythonObjects) -> None:
    text = "y" * 5000
    assert objects.texts([id(text)]) == ["y" * 200]


def test_other_objects_are_no_texts(objects: PythonObjects) -> None:
    others = [b"bytes", 5, None, [], type]
    assert objects.texts([*map(id, others), 0, 1, 1 << 62]) == [None] * 8


def test_small_ints_are_read_and_others_are_not(objects: PythonObjects) -> None:
    numbers = [1, 4321, (1 << 22) - 1, (1 << 30) - 1, 1 << 30, -1, 0, "5"]
    found = objects.small_ints([*map(id, numbers), 0])
    assert found == [*numbers[:4], None, None, None, None, None]


@pytest.mark.parametrize("size", [0, 1, 5, 100, 1000])
def test_the_items_of_a_dictionary_are_read(objects: PythonObjects, size: int) -> None:
    wanted = dict(list(MANY.items())[:size])
    found = objects.items(id(wanted))
    assert found == [(id(key), id(value)) for key, value in wanted.items()]


def test_removed_and_general_keys_of_a_dictionary(objects: PythonObjects) -> None:
    wanted: dict[object, str] = {1: "a", "two": "b", (3,): "c"}
    del wanted["two"]
    assert objects.items(id(wanted)) == [(id(key), id(value)) for key, value in wanted.items()]


def test_another_object_has_no_items(objects: PythonObjects) -> None:
    wanted = [[], "text", Plain()]
    assert [objects.items(id(one)) for one in wanted] == [[], [], []]
    assert objects.items(0) == []


def test_a_value_is_found_by_its_key(objects: PythonObjects) -> None:
    assert objects.value(id(MANY), "key 7") == id(MANY["key 7"])
    assert objects.value(id(MANY), "key") == 0


def test_attributes_are_found_wherever_they_lie(objects: PythonObjects) -> None:
    plain, more, seen, deleted, slotted = Plain(), Plain(), Plain(), Plain(), Slotted()
    for number in range(50):
        setattr(more, f"extra_{number}", number)
    assert "first" in vars(seen)
    del deleted.second
    all_of_them = [plain, more, seen, deleted, slotted, "text"]
    found = objects.attributes([id(one) for one in all_of_them], ("first", "second"))
    both = {"first": id(plain.first), "second": id(plain.second)}
    assert found == [both, both, both, {"first": id(plain.first)}, {}, {}]


def test_the_values_of_an_instance_with_many_attributes_are_not_mixed_up(
    objects: PythonObjects,
) -> None:
    several = []
    for number in range(3):
        one = Plain()
        one.first = f"name {number}"
        several.append(one)
    found = objects.attributes([id(one) for one in several], ("first",))
    assert objects.texts([one["first"] for one in found]) == ["name 0", "name 1", "name 2"]
