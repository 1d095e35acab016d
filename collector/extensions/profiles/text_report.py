"""Profiles of a program's own code as text: their list, and one or two of them by bucket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from locktop.collector.extensions.profiles import words
from locktop.collector.extensions.profiles.kept_profile import CodeLine, KeptProfile
from locktop.collector.extensions.profiles.model import SelfProfile
from locktop.collector.extensions.profiles.profile_listing import BucketRow, Listing
from locktop.collector.render.words import units

#: Rows of a text. Those with the fewest samples are left out first.
MAX_ROWS = 1000
_COUNT, _MORE, _MIN_PLOT, _MAX_PLOT = 8, 8, 8, 20  # columns
#: Columns of a name in the list, and of all beside the name.
_MIN_NAME, _BESIDE_NAME = 16, 70
_MIN_INSTRUCTION, _MAX_INSTRUCTION = 11, 30
_MIN_SOURCE, _SOURCE, _MAX_SOURCE = 8, 24, 200


def render_list(profiles: Sequence[SelfProfile], width: int = 100) -> str:
    """Return the profiles of a process, one a line."""
    if not profiles:
        return "no profile; docs/profile.md says how a program makes one\n"
    longest = max(len(profile.name) for profile in profiles)
    room = min(max(longest, _MIN_NAME), max(width - _BESIDE_NAME, _MIN_NAME))
    head = f"{'NO':>3}  {'NAME':<{room}} {'SOURCE':<16} {'INTERVAL':>12} {'STATE':<10} "
    lines = [head + f"{'SAMPLES':>9}  REGIONS"]
    lines += [
        f"{profile.number:>3}  {_fit(profile.name or '-', room):<{room}} {profile.source:<16} "
        f"{words.interval(profile):>12} {profile.state:<10} {profile.samples:>9,}"
        f"  {words.region_names(profile)}"
        for profile in profiles
    ]
    return "".join(line[:width].rstrip() + "\n" for line in lines)


def render(listing: Listing, width: int = 100) -> str:
    """Return one profile, or two beside each other: totals, and a row for each bucket."""
    lines = [
        *_heads(listing),
        "",
        *rows(listing, width),
        *(f"note: {note}" for note in listing.notes),
    ]
    return "".join(line[:width].rstrip() + "\n" for line in lines)


def _heads(listing: Listing) -> Iterator[str]:
    marks = ("A", "B") if listing.is_contrast else ("",)
    for mark, kept in zip(marks, listing.profiles, strict=True):
        yield from heads(kept, f"{mark}  " if mark else "")
    if listing.is_contrast:
        yield ratio(listing)
        yield difference(listing)


def heads(kept: KeptProfile, mark: str = "") -> Iterator[str]:
    """Yield the lines above the buckets of one profile."""
    profile = kept.profile
    yield (
        f"{mark}{words.profile_name(profile)} of {kept.comm} {kept.pid}, {kept.taken_at[:19]}:"
        f" {words.region_names(profile)}"
    )
    blank = " " * len(mark)
    yield (
        f"{blank}{profile.source}, a sample is {words.interval(profile)};"
        f" buckets of {profile.bucket_size} bytes; {words.threads(profile)}; {profile.state}"
    )
    yield (
        f"{blank}samples {profile.samples:,} = {words.total(profile, profile.samples)};"
        f" elsewhere {profile.elsewhere:,}; lost {profile.lost:,}"
        f"; ran {units.duration(profile.ran_s)}"
    )


def ratio(listing: Listing) -> str:
    """Return the totals of two profiles as one line: how much B is of A."""
    first, other = (kept.profile for kept in listing.profiles)
    if not first.samples or first.unit != other.unit or (first.source != other.source):
        return "B : A  -"
    share = other.samples * other.interval / (first.samples * first.interval)
    return f"B : A  {share:.3f}"


def rows(listing: Listing, width: int = 100) -> Iterator[str]:
    """Yield the titles and the rows of the buckets."""
    if not listing.rows:
        yield "no samples in these regions"
        return
    visible = _visible(listing)
    columns = _columns(listing, visible, width)
    titles = ("A", "B") if listing.is_contrast else ("SAMPLES",)
    counts = " ".join(f"{title:>{_COUNT}}" for title in titles)
    more = "B-A" if listing.is_contrast else "SHARE"
    plots = " ".join(f"{title if listing.is_contrast else '':<{columns.plot}}" for title in titles)
    heads = f"{'BUCKET':<{columns.offset}} {counts} {more:>{_MORE}}  {plots}"
    yield f"{heads} {'INSTRUCTION':<{columns.instruction}} SOURCE"
    region = None
    for row in visible:
        if row.region != region:
            region = row.region
            yield f"{words.region_name(listing.regions[region])}:"
        yield from _bucket(listing, row, columns)
    if len(visible) < len(listing.rows):
        yield f"{len(listing.rows) - len(visible)} buckets with fewer samples are left out"


class _Widths(NamedTuple):
    """The widths of the columns, and the counts that fill the plots."""

    offset: int
    plot: int
    instruction: int
    source: int
    most: tuple[int, ...]


def _columns(listing: Listing, visible: Sequence[BucketRow], width: int) -> _Widths:
    texts = [entry.instruction.text for row in visible for entry in row.instructions]
    instruction = min(_MAX_INSTRUCTION, max((len(text) for text in texts), default=11))
    offset = max(6, *(len(_offset(row)) for row in visible))
    count = len(listing.profiles)
    room = width - offset - count * (_COUNT + 2) - _MORE - instruction - _SOURCE - 5
    plot = max(_MIN_PLOT, min(_MAX_PLOT, room // count))
    source = _SOURCE + room - count * plot
    if source < _MIN_SOURCE:
        instruction = max(_MIN_INSTRUCTION, instruction - (_MIN_SOURCE - source))
        source = _MIN_SOURCE
    return _Widths(
        offset=offset,
        plot=plot,
        instruction=instruction,
        source=source,
        most=_scale(listing),
    )


def _visible(listing: Listing) -> list[BucketRow]:
    if len(listing.rows) <= MAX_ROWS:
        return list(listing.rows)
    by_count = sorted(listing.rows, key=lambda row: -max(row.counts))
    kept = {(row.region, row.offset) for row in by_count[:MAX_ROWS]}
    return [row for row in listing.rows if (row.region, row.offset) in kept]


def _scale(listing: Listing) -> tuple[int, ...]:
    """Return the count that fills the plot: the same of both profiles if they can be compared."""
    most = [
        max(row.counts[index] for row in listing.rows) for index in range(len(listing.profiles))
    ]
    kinds = {(kept.profile.source, kept.profile.interval) for kept in listing.profiles}
    return (max(most),) * len(most) if len(kinds) == 1 else tuple(most)


def _bucket(listing: Listing, row: BucketRow, columns: _Widths) -> Iterator[str]:
    counts = " ".join(f"{count:>{_COUNT},}" for count in row.counts)
    if listing.is_contrast:
        more = f"{row.difference:>+{_MORE},}"
    else:
        whole = max(1, listing.profiles[0].profile.samples)
        more = f"{units.percent(row.counts[0] / whole):>{_MORE}}"
    plots = words.plot(row.counts, columns.most, columns.plot)
    figures = f"{_offset(row):<{columns.offset}} {counts} {more}  {plots}"
    wide = columns.instruction
    if not row.instructions:
        yield f"{figures} {'':<{wide}} {_source(row.line, columns.source)}"
    for number, entry in enumerate(row.instructions):
        before = figures if not number else " " * len(figures)
        text = _fit(entry.instruction.text, wide)
        yield f"{before} {text:<{wide}} {_source(entry.line or row.line, columns.source)}"


def _offset(row: BucketRow) -> str:
    return f"+{row.offset:#x}"


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _source(line: CodeLine | None, width: int) -> str:
    if line is None or not line.file:
        return ""
    text = f"{line.file.rpartition('/')[2]}:{line.line}"
    return text if len(text) <= width else "…" + text[len(text) - width + 1 :]


def difference(listing: Listing) -> str:
    """Return the bucket in which two profiles differ most, as one line."""
    row = listing.largest_difference
    if row is None:
        return "no bucket differs"
    name = words.region_name(listing.regions[row.region])
    where = f"largest difference: {name}{_offset(row)}, A {row.counts[0]:,}, B {row.counts[-1]:,}"
    # The bucket may begin within the last instruction of the one before.
    first = next((entry.line for entry in row.instructions if entry.line is not None), row.line)
    source = _source(first, _MAX_SOURCE)
    return f"{where}, {source}" if source else where
