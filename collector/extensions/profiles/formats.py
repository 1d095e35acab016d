"""The formats of `locktop profile` and of its screen. See render/formats.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from locktop.collector.render.formats import WIDTH, OutputFormat, ResultFormats

if TYPE_CHECKING:
    from locktop.collector.extensions.profiles.model import SelfProfile
    from locktop.collector.extensions.profiles.profile_listing import Listing


def _list_text(profiles: tuple[SelfProfile, ...], width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.profiles import text_report
    from locktop.collector.render.files import encoded

    return encoded(text_report.render_list(profiles, width))


def _list_json(profiles: tuple[SelfProfile, ...], width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.profiles import report_json

    return report_json.encode_list(profiles)


PROFILE_LIST_FORMATS = ResultFormats(
    OutputFormat("text", ".txt", _list_text, is_prose=True),
    OutputFormat("json", ".json", _list_json),
)


def _profile_text(listing: Listing, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.profiles import text_report
    from locktop.collector.render.files import encoded

    return encoded(text_report.render(listing, width))


def _profile_json(listing: Listing, width: int = WIDTH) -> bytes:
    from locktop.collector.extensions.profiles import report_json

    return report_json.encode(listing)


PROFILE_FORMATS = ResultFormats(
    OutputFormat("text", ".txt", _profile_text, is_prose=True),
    OutputFormat("json", ".json", _profile_json),
)
