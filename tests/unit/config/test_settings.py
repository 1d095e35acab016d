"""Settings: the layers, and what a wrong file leaves."""

from __future__ import annotations

import tomllib
from pathlib import Path

import msgspec
import pytest

from locktop.collector.config import settings
from locktop.collector.config.settings import DESCRIPTIONS, Origin, SavedView, Settings


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "locktop").mkdir()
    return tmp_path / "locktop" / "config.toml"


def test_without_a_file_all_is_built_in(file: Path) -> None:
    loaded = settings.load({})
    assert loaded.settings == Settings()
    assert set(loaded.origins.values()) == {Origin.BUILT_IN}
    assert loaded.problems == ()


def test_the_environment_goes_before_the_file(file: Path) -> None:
    file.write_text('rate = 3.0\ntheme = "paper"\nmouse = true\n')
    loaded = settings.load({"LOCKTOP_RATE": "4", "LOCKTOP_LEVEL": "all"})
    assert (loaded.settings.rate, loaded.settings.theme) == (4.0, "paper")
    assert loaded.settings.mouse
    assert loaded.origins["rate"] is Origin.ENVIRONMENT
    assert loaded.origins["theme"] is Origin.FILE
    assert loaded.origins["history"] is Origin.BUILT_IN


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("rate = 99", "rate: expected `float` <= 10.0"),
        ('mouse = "yes"', "mouse: expected `bool`"),
        ("colour = 1", "there is no setting 'colour'"),
        ("[views.slow]\nfiltre = 'x'", "views: object contains unknown field `filtre`"),
        ("idle_matching = [1]", "idle_matching: expected `str`"),
    ],
)
def test_a_wrong_field_is_a_message_and_the_others_count(
    line: str, message: str, file: Path
) -> None:
    file.write_text(f'theme = "paper"\n{line}\n')
    loaded = settings.load({})
    assert loaded.settings == Settings(theme="paper")
    (problem,) = loaded.problems
    assert str(file) in problem
    assert message in problem


@pytest.mark.parametrize("content", [b"theme = ", b"\xff\xfe", b"a" * (1 << 21)])
def test_a_broken_file_is_left_out_with_a_message(content: bytes, file: Path) -> None:
    file.write_bytes(content)
    loaded = settings.load({"LOCKTOP_RATE": "4"})
    assert loaded.settings == Settings(rate=4.0)
    (problem,) = loaded.problems
    assert str(file) in problem


def test_a_wrong_variable_is_a_message(file: Path) -> None:
    loaded = settings.load({"LOCKTOP_RATE": "fast"})
    assert loaded.settings == Settings()
    assert loaded.problems[0].startswith("LOCKTOP_RATE: rate: ")


def test_the_template_explains_each_field_and_changes_nothing(file: Path) -> None:
    assert set(DESCRIPTIONS) == set(Settings.__struct_fields__)
    text = settings.template()
    assert tomllib.loads(text) == {}
    file.write_text(text)
    assert settings.load({}).settings == Settings()


def test_each_example_of_the_template_is_right(file: Path) -> None:
    lines = settings.template().splitlines()
    file.write_text("\n".join(line[1:] for line in lines if line[:1] == "#" and line[1:2] != " "))
    loaded = settings.load({})
    assert loaded.problems == ()
    assert loaded.settings.views == {"slow": SavedView(filter="cache", sort="wait")}


def test_the_printed_settings_are_toml_of_themselves(file: Path) -> None:
    file.write_text('[views.slow]\nfilter = "a \\"b\\""\n[columns]\nlocks = ["LOCK"]\n')
    loaded = settings.load({})
    file.write_text(settings.toml_text(loaded))
    again = settings.load({})
    assert again.problems == ()
    assert msgspec.to_builtins(again.settings) == msgspec.to_builtins(loaded.settings)
