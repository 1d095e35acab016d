"""Where the waiting comes from, as a page of plain text for a ticket: a tree, or a butterfly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from locktop.collector.render.profiles.call_tree import (
    Butterfly,
    Node,
    SourceLine,
    Step,
    StepKind,
    Wing,
)
from locktop.collector.render.profiles.profile import Profile, Weight, WeightUnit
from locktop.collector.render.words import units
from locktop.collector.render.words.wrap import wrapped
from locktop.collector.sanitize import clean

#: Of the whole: smaller branches are left out, and said to be.
SMALLEST = 0.005
#: A figure, at the right of its column.
_FIGURE = 13
_MIN_NAME = 20


def render_tree(profile: Profile, weight: Weight, idle: bool, width: int = 100) -> str:
    """Return the tree; with ``idle`` also waits for work. No line is longer than ``width``."""
    return _page(_Page(profile, weight, idle, width).tree(), width)


def render_butterfly(
    profile: Profile, weight: Weight, step: Step, idle: bool, width: int = 100
) -> str:
    """Return ``step`` between its callers and its callees."""
    return _page(_Page(profile, weight, idle, width).butterfly(step), width)


def _page(lines: Iterator[str], width: int) -> str:
    return "\n".join(part for line in lines for part in wrapped(line, width)) + "\n"


def figure(value: float, weight: Weight) -> str:
    """Return a value as a person reads it."""
    if weight.unit is WeightUnit.SECONDS:
        return units.duration(value)
    return f"{value:,.0f}" if value >= 1000 or value == int(value) else f"{value:.2f}"


class _Page:
    def __init__(self, profile: Profile, weight: Weight, idle: bool, width: int) -> None:
        self._profile = profile
        self._weight = weight
        self._idle = idle
        self._width = width
        self._whole = 0.0
        self._left_out = 0

    # ---- the tree ----

    def tree(self) -> Iterator[str]:
        root = self._profile.tree(self._weight.name)
        self._whole = root.value
        yield from self._head(root)
        if not root.children:
            yield ""
            yield "no thread waited"
        else:
            yield ""
            yield f"{'share':>8}{'in all':>{_FIGURE}}{'itself':>{_FIGURE}}  function"
            yield from self._children(root, 0)
        if self._left_out:
            few = "1 branch" if self._left_out == 1 else f"{self._left_out} branches"
            yield f"{few} under {100 * SMALLEST:.1f} % left out; --format json has all"
        yield from self._notes()

    def _head(self, root: Node) -> Iterator[str]:
        estimate = ", an estimate: there are no whole stacks" if self._profile.estimate else ""
        yield f"locktop {self._profile.name}: {self._profile.title}"
        yield f"{self._weight.says}: {self._figure(root.value)}{estimate}"
        if root.idle:
            where_to_find = "in parentheses below" if self._idle else "not shown"
            yield f"waits for work, {where_to_find}: {self._figure(root.idle)}"

    def _children(self, root: Node, indent: int) -> Iterator[str]:
        """Yield the lines of all children, depth first. Only the several callees of a function are
        indented, and each of them begins with a mark."""
        line = [(node, indent, "") for node in reversed(self._visible_children(root))]
        while line:
            node, indent, mark = line.pop()
            yield self._line(node, node.own, node.own_idle, indent, mark)
            below = self._visible_children(node)
            further = indent + (1 if mark else 0)
            line += [(child, further, "+ " * (len(below) > 1)) for child in reversed(below)]

    def _visible_children(self, node: Node) -> Sequence[Node]:
        chosen = []
        for child in node.children:
            if child.value > self._whole * SMALLEST or (self._idle and child.idle > 0):
                chosen.append(child)
            elif child.value > 0:
                self._left_out += 1
        return chosen

    # ---- a butterfly ----

    def butterfly(self, step: Step) -> Iterator[str]:
        root = self._profile.tree(self._weight.name)
        self._whole = root.value
        middle = self._profile.butterfly(self._weight.name, step)
        yield f"locktop {self._profile.name}: {self._profile.title}"
        yield f"{self._weight.says}: {self._figure(root.value)}; shares are of that"
        yield ""
        yield f"{'share':>8}{'in all':>{_FIGURE}}{'itself':>{_FIGURE}}  function"
        yield from self._wings(middle.callers, "no caller: a thread begins there")
        yield self._line(middle, middle.own, middle.own_idle, 0, mark="> ")
        yield from self._wings(middle.callees, "no callee")
        yield from self._notes()

    def _wings(self, wings: Sequence[Wing], none: str) -> Iterator[str]:
        chosen = [wing for wing in wings if wing.value > 0 or (self._idle and wing.idle > 0)]
        if not chosen:
            yield f"{'':{8 + 2 * _FIGURE}}      {none}"
        for wing in chosen:
            yield self._line(wing, None, None, 2)

    # ---- lines ----

    def _line(
        self,
        node: Node | Wing | Butterfly,
        own: float | None,
        own_idle: float | None,
        indent: int,
        mark: str = "",
    ) -> str:
        of_idle = node.value <= 0
        part = (
            "idle"
            if of_idle
            else units.percent(node.value / self._whole if self._whole > 0 else 0.0)
        )
        value = f"({self._figure(node.idle)})" if of_idle else self._figure(node.value)
        mine = own_idle if of_idle else own
        mine = None if node.step.kind is StepKind.LOCK else mine
        alone = "" if mine is None else f"({self._figure(mine)})" if of_idle else self._figure(mine)
        before = f"{part:>8}{value:>{_FIGURE}}{alone:>{_FIGURE}}  "
        room = max(_MIN_NAME, self._width - len(before) - len(mark))
        # However deep it is, there is room for a name.
        inward = "  " * min(indent, (room - _MIN_NAME) // 2) + mark
        return before + inward + clean(self._said(node), max(_MIN_NAME, room - len(inward)))

    def _said(self, node: Node | Wing | Butterfly) -> str:
        said = named(node.step, node.location)
        if getattr(node, "inlined", False):
            said += " (inlined)"
        return said + " (again)" if getattr(node, "again", False) else said

    def _figure(self, value: float) -> str:
        return figure(value, self._weight)

    def _notes(self) -> Iterator[str]:
        notes = self._profile.notes(self._weight.name)
        if notes:
            yield from ("", "NOTES", *(f"  {note}" for note in notes))


def named(step: Step, location: SourceLine | None) -> str:
    """Return ``function at file:line``, or with its module where the line is not known."""
    if step.kind is StepKind.THREAD:
        return f"held by {step.name}"
    if step.kind is not StepKind.FUNCTION:
        return step.name
    if location is not None:
        return f"{step.name} at {where(location)}"
    has_module = step.module and not step.name.startswith(f"{step.module}+")
    return f"{step.name} in {step.module}" if has_module else step.name


def where(location: SourceLine) -> str:
    """Return ``file:line`` with the bare name of the file, of either system."""
    name = location.file.replace("\\", "/").rsplit("/", 1)[-1]
    return f"{name}:{location.line}" if location.line else name
