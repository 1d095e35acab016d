"""The functions that run inside a lock: a list with shares, and a tree below the call sites."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct, field

from locktop.collector.extensions.inside.model import InsideStack
from locktop.collector.model import Frame, Snapshot
from locktop.collector.render.profiles import call_tree
from locktop.collector.render.profiles.call_tree import (
    Branch,
    Node,
    SourceLine,
    StackCall,
    Step,
    StepKind,
    function,
)

_NO_SITE = StackCall(Step("call site not known", kind=StepKind.UNKNOWN))


class FunctionShare(Struct, frozen=True):
    """A function inside a lock. Values are samples; a recursive function counts once in each."""

    step: Step
    own: int  # samples in the function itself
    total: int  # also in the functions that it calls
    asleep: int  # of ``total``, the samples of threads that slept
    location: SourceLine | None = None  # the line with the most of the total


class InsideTree(Struct, frozen=True):
    """The functions that run inside one lock."""

    samples: int
    functions: tuple[FunctionShare, ...]  # the largest own value first
    root: Node  # the children are the functions that took the lock; values are samples


class _Sum(Struct):
    own: int = 0
    total: int = 0
    asleep: int = 0
    lines: dict[SourceLine, int] = field(default_factory=dict)


def inside(snapshot: Snapshot, stacks: Sequence[InsideStack]) -> InsideTree:
    """Return what runs inside a lock with these stacks of a snapshot."""
    branches, sums = [], defaultdict[Step, _Sum](_Sum)
    for stack, branch in stack_branches(snapshot, stacks):
        branches.append(branch)
        _add(sums, (_present_call(snapshot, stack) or branch.calls[0], *branch.calls[1:]), stack)
    functions = sorted(
        (
            FunctionShare(
                step=step,
                own=function_sum.own,
                total=function_sum.total,
                asleep=function_sum.asleep,
                location=max(
                    function_sum.lines, key=lambda line: function_sum.lines[line], default=None
                ),
            )
            for step, function_sum in sums.items()
        ),
        key=lambda share: (-share.own, -share.total, share.step),
    )
    samples = sum(share.own for share in functions)
    return InsideTree(samples=samples, functions=tuple(functions), root=call_tree.tree(branches))


def stack_branches(
    snapshot: Snapshot, stacks: Sequence[InsideStack]
) -> Iterator[tuple[InsideStack, Branch]]:
    """Yield each stack of a lock with its branch: from the call site down. Values are samples."""
    shared = _shared_callers(snapshot, stacks)
    for stack in stacks:
        yield stack, Branch(_calls(snapshot, stack, shared.get(stack.site, 0)), float(stack.count))


def _add(sums: dict[Step, _Sum], calls: Sequence[StackCall], stack: InsideStack) -> None:
    sums[calls[-1].step].own += stack.count
    for call in {call.step: call for call in calls}.values():
        function_sum = sums[call.step]
        function_sum.total += stack.count
        function_sum.asleep += 0 if stack.on_cpu else stack.count
        if call.location is not None:
            function_sum.lines[call.location] = (
                function_sum.lines.get(call.location, 0) + stack.count
            )


def _calls(snapshot: Snapshot, stack: InsideStack, shared: int) -> tuple[StackCall, ...]:
    """Return the call site, then the frames below it, the outermost first."""
    site = snapshot.sites.get(stack.site)
    frames = snapshot.stacks.get(stack.stack, ())
    root = call_tree.calls_of((site,)) if site is not None else (_NO_SITE,)
    site_index = _site_at(frames, site)
    if site_index is None:
        site_index = max(len(frames) - shared, 1 if frames else 0)
    below = call_tree.calls_of(frames[:site_index])
    if not frames:
        below = (StackCall(call_tree.NO_STACK),)
    return (*root, *below)


def _present_call(snapshot: Snapshot, stack: InsideStack) -> StackCall | None:
    """Return the function that took the lock with the line where it is now; None if it returned."""
    frames = snapshot.stacks.get(stack.stack, ())
    index = _site_at(frames, snapshot.sites.get(stack.site))
    return call_tree.calls_of((frames[index],))[0] if index is not None else None


def _site_at(frames: Sequence[Frame], site: Frame | None) -> int | None:
    """Return the index of the frame of the function that took the lock; None if there is none."""
    if site is None:
        return None
    step = function(site)
    return next((index for index, frame in enumerate(frames) if function(frame) == step), None)


def _shared_callers(snapshot: Snapshot, stacks: Iterable[InsideStack]) -> dict[int, int]:
    """Return by call site how many outer frames all its stacks share.

    A function that only takes the lock for its caller has returned. The caller of it has not, so
    all stacks share that frame and those above.
    """
    shared: dict[int, tuple[Step, ...]] = {}
    for stack in stacks:
        frames = snapshot.stacks.get(stack.stack, ())
        if not frames:
            continue
        steps = tuple(function(frame) for frame in reversed(frames))
        common_steps = shared.get(stack.site)
        shared[stack.site] = steps if common_steps is None else _common(common_steps, steps)
    return {site: len(steps) for site, steps in shared.items()}


def _common(first_steps: tuple[Step, ...], other: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return the begin that both have."""
    pairs = zip(first_steps, other, strict=False)
    differing = (index for index, (first, second) in enumerate(pairs) if first != second)
    return first_steps[: next(differing, min(len(first_steps), len(other)))]
