"""The probes of one program that both sources use, and their budgets."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from locktop.collector.analysis.idle.classifier import Classifier
from locktop.collector.model import Draft
from locktop.collector.sources.probes.gil_holders import GilHolders
from locktop.collector.sources.probes.holder_activity import HolderProbe
from locktop.collector.sources.probes.native_stacks import NativeStacks
from locktop.collector.sources.probes.probable_holders import ProbableHolders
from locktop.collector.sources.probes.python_holders import PythonHolders
from locktop.collector.sources.probes.python_stacks import PythonStacks
from locktop.collector.sources.probes.python_thread_names import PythonThreadNames
from locktop.collector.symbols.resolver import Resolver


class Probes(Struct, frozen=True):
    """The probes that both sources use for the program that the process executes now."""

    resolver: Resolver
    native_stacks: NativeStacks
    python: PythonStacks
    thread_names: PythonThreadNames
    holders: HolderProbe
    classifier: Classifier
    probable_holders: ProbableHolders
    python_holders: PythonHolders
    gil_holders: GilHolders
    annotate_children: Callable[[Draft], None]  # with their waits


class StackBudgets(NamedTuple):
    """Seconds that a scan spends on new call stacks. Later scans take the remaining stacks."""

    of_waits: float
    of_new_waits: float  # waits that began after the last scan: most of them end soon
    of_holders: float
    of_unobserved_waits: float
