"""What-if: the throughput after a change of the locks, predicted from records of a few seconds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from locktop.collector.extension.parts import Extension, SnapshotSection

if TYPE_CHECKING:
    from locktop.collector.model import Snapshot


def _section() -> SnapshotSection:
    import msgspec

    from locktop.collector.extensions.whatif import json_document
    from locktop.collector.extensions.whatif.entry import WhatIfEntry
    from locktop.collector.extensions.whatif.model import WhatIf

    return SnapshotSection(
        model=WhatIf,
        entry=WhatIfEntry,
        meaning="The newest predictions; with --whatif, or after key U.",
        write=json_document.document,
        read=lambda entry: msgspec.convert(entry, WhatIf, from_attributes=True),
    )


def _report(snapshot: Snapshot, width: int) -> Iterator[str]:
    if "whatif" in snapshot.sections:
        from locktop.collector.extensions.whatif import text_report

        yield from text_report.summary(snapshot, width)


EXTENSION = Extension(name="whatif", section=_section, report=_report)
