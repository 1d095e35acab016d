"""Profiles of a program's own code as text: their list, and one or two of them by bucket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from locktop.collector.model import SelfProfile
from locktop.collector.render.profiles.kept_profile import CodeLine, KeptProfile
from locktop.collector.render.profiles.profile_listing import BucketRow, Listing
from locktop.collector.render.words import self_profile as words
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
    longest = max(len(one.name) for one in profiles)
    room = min(max(longest, _MIN_NAME), max(width - _BESIDE_NAME, _MIN_NAME))
    head = f"{'NO':>3}  {'NAME':<{room}} {'SOURCE':<16} {'INTERVAL':>12} {'STATE':<10} "
    lines = [head + f"{'SAMPLES':>9}  REGIONS"]
    lines += [
        f"{one.number:>3}  {_fit(one.name or '-', room):<{room}} {one.source:<16} "
        f"{words.interval(one):>12} {one.state:<10} {one.samples:>9,}  {words.region_names(one)}"
        for one in profiles
    ]
    return "".join(line[:width].rstrip() + "\n" for line in lines)


def render(found: Listing, width: int = 100) -> str:
    """Return one profile, or two beside each other: totals, and a row for each bucket."""
    lines = [*_heads(found), "", *rows(found, width), *(f"note: {note}" for note in found.notes)]
    return "".join(line[:width].rstrip() + "\n" for line in lines)


def _heads(found: Listing) -> Iterator[str]:
    marks = ("A", "B") if found.is_contrast else ("",)
    for mark, kept in zip(marks, found.profiles, strict=True):
        yield from heads(kept, f"{mark}  " if mark else "")
    if found.is_contrast:
        yield ratio(found)
        yield difference(found)


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


def ratio(found: Listing) -> str:
    """Return the totals of two profiles as one line: how much B is of A."""
    one, other = (kept.profile for kept in found.profiles)
    if not one.samples or one.unit != other.unit or (one.source != other.source):
        return "B : A  -"
    share = other.samples * other.interval / (one.samples * one.interval)
    return f"B : A  {share:.3f}"


def rows(found: Listing, width: int = 100) -> Iterator[str]:
    """Yield the titles and the rows of the buckets."""
    if not found.rows:
        yield "no samples in these regions"
        return
    visible = _visible(found)
    columns = _columns(found, visible, width)
    titles = ("A", "B") if found.is_contrast else ("SAMPLES",)
    counts = " ".join(f"{title:>{_COUNT}}" for title in titles)
    more = "B-A" if found.is_contrast else "SHARE"
    plots = " ".join(f"{title if found.is_contrast else '':<{columns.plot}}" for title in titles)
    heads = f"{'BUCKET':<{columns.offset}} {counts} {more:>{_MORE}}  {plots}"
    yield f"{heads} {'INSTRUCTION':<{columns.instruction}} SOURCE"
    region = None
    for row in visible:
        if row.region != region:
            region = row.region
            yield f"{words.region_name(found.regions[region])}:"
        yield from _bucket(found, row, columns)
    if len(visible) < len(found.rows):
        yield f"{len(found.rows) - len(visible)} buckets with fewer samples are left out"


class _Widths(NamedTuple):
    """The widths of the columns, and the counts that fill the plots."""

    offset: int
    plot: int
    instruction: int
    source: int
    most: tuple[int, ...]


def _columns(found: Listing, visible: Sequence[BucketRow], width: int) -> _Widths:
    texts = [one.instruction.text for row in visible for one in row.instructions]
    instruction = min(_MAX_INSTRUCTION, max((len(text) for text in texts), default=11))
    offset = max(6, *(len(_offset(row)) for row in visible))
    count = len(found.profiles)
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
        most=_scale(found),
    )


def _visible(found: Listing) -> list[BucketRow]:
    if len(found.rows) <= MAX_ROWS:
        return list(found.rows)
    by_count = sorted(found.rows, key=lambda row: -max(row.counts))
    kept = {(row.region, row.offset) for row in by_count[:MAX_ROWS]}
    return [row for row in found.rows if (row.region, row.offset) in kept]


def _scale(found: Listing) -> tuple[int, ...]:
    """Return the count that fills the plot: the same of both profiles if they can be compared."""
    most = [max(row.counts[at] for row in found.rows) for at in range(len(found.profiles))]
    kinds = {(kept.profile.source, kept.profile.interval) for kept in found.profiles}
    return (max(most),) * len(most) if len(kinds) == 1 else tuple(most)


def _bucket(found: Listing, row: BucketRow, columns: _Widths) -> Iterator[str]:
    counts = " ".join(f"{count:>{_COUNT},}" for count in row.counts)
    if found.is_contrast:
        more = f"{row.difference:>+{_MORE},}"
    else:
        whole = max(1, found.profiles[0].profile.samples)
        more = f"{units.percent(row.counts[0] / whole):>{_MORE}}"
    plots = words.plot(row.counts, columns.most, columns.plot)
    figures = f"{_offset(row):<{columns.offset}} {counts} {more}  {plots}"
    wide = columns.instruction
    if not row.instructions:
        yield f"{figures} {'':<{wide}} {_source(row.line, columns.source)}"
    for number, one in enumerate(row.instructions):
        before = figures if not number else " " * len(figures)
        text = _fit(one.instruction.text, wide)
        yield f"{before} {text:<{wide}} {_source(one.line or row.line, columns.source)}"


def _offset(row: BucketRow) -> str:
    return f"+{row.offset:#x}"


def _fit(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _source(line: CodeLine | None, width: int) -> str:
    if line is None or not line.file:
        return ""
    text = f"{line.file.rpartition('/')[2]}:{line.line}"
    return text if len(text) <= width else "…" + text[len(text) - width + 1 :]


def difference(found: Listing) -> str:
    """Return the bucket in which two profiles differ most, as one line."""
    row = found.largest_difference
    if row is None:
        return "no bucket differs"
    name = words.region_name(found.regions[row.region])
    where = f"largest difference: {name}{_offset(row)}, A {row.counts[0]:,}, B {row.counts[-1]:,}"
    # The bucket may begin within the last instruction of the one before.
    first = next((one.line for one in row.instructions if one.line is not None), row.line)
    source = _source(first, _MAX_SOURCE)
    return f"{where}, {source}" if source else where
