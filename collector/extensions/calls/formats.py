"""The formats of `locktop calls` and of its screen. See render/formats.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.render.formats import CALL_TREE_FORMATS, WIDTH, OutputFormat, ResultFormats

if TYPE_CHECKING:
    from locktop.collector.extensions.calls.calls_profile import CallsProfile
    from locktop.collector.render.profiles.call_tree import Step
    from locktop.collector.render.profiles.profile import Weight


def _text(profile: CallsProfile, flat: bool = False, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.calls import text_report
    from locktop.collector.render.files import encoded

    return encoded(text_report.render(profile, flat, width))


def _json(profile: CallsProfile, flat: bool = False, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.calls import report_json
    from locktop.collector.render import files

    return files.encoded_json(report_json.document(profile, flat))


#: With ``flat`` the tree is left out.
CALLS_FORMATS = ResultFormats(
    OutputFormat("text", ".txt", _text, about="text (the default)", is_prose=True),
    OutputFormat("json", ".json", _json, about="json"),
)


def _screen_text(
    profile: CallsProfile, weight: Weight, idle: bool, step: Step | None, width: int = WIDTH
) -> bytes:
    if step is None:
        return _text(profile, width=width)
    return CALL_TREE_FORMATS.render("text", profile, weight, idle, step, width)


def _screen_json(
    profile: CallsProfile, weight: Weight, idle: bool, step: Step | None, width: int = WIDTH
) -> bytes:
    if step is None:
        return _json(profile)
    return CALL_TREE_FORMATS.render("json", profile, weight, idle, step)


#: The screen saves all of it as `locktop calls` does, or the butterfly of one function.
SCREEN_FORMATS = ResultFormats(
    OutputFormat("text", ".txt", _screen_text), OutputFormat("json", ".json", _screen_json)
)
