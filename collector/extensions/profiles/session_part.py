"""The part of a scan that reads the profiles, and finds the functions of their regions."""

from __future__ import annotations

from msgspec.structs import replace

from locktop.collector.extensions.profiles.model import NAME, SelfProfile
from locktop.collector.extensions.profiles.profile_table import ProfileTable
from locktop.collector.model import Draft
from locktop.collector.shm.reader import Reading
from locktop.collector.sources.preload.session_part import SessionContext, SessionPart
from locktop.collector.symbols.resolver import Resolver


class ProfileReader(SessionPart):
    """Reads the profiles of one program. See SessionPart."""

    def __init__(self, context: SessionContext) -> None:
        self._table = ProfileTable(context.memory, context.clock)
        self._resolver = context.resolver

    def build(self, draft: Draft, reading: Reading) -> None:
        if profiles := self._table.read(reading.now):
            draft.sections = {**draft.sections, NAME: _name_functions(profiles, self._resolver)}

    def complete(self, draft: Draft, reading: Reading, is_last: bool) -> bool:
        if NAME in draft.sections:
            profiles = _name_functions(draft.sections[NAME], self._resolver)
            draft.sections = {**draft.sections, NAME: profiles}
        return False


def _name_functions(
    profiles: tuple[SelfProfile, ...], resolver: Resolver
) -> tuple[SelfProfile, ...]:
    """Return the profiles with the functions that are known; request the names of the others."""
    # The resolver expects return addresses.
    return tuple(
        replace(
            profile,
            regions=tuple(
                replace(region, function=resolver.frame(region.start + 1).function)
                for region in profile.regions
            ),
        )
        for profile in profiles
    )
