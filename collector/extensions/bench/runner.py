"""Runs the benchmark program with one flavour of the library."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from locktop.collector.errors import LocktopError
from locktop.collector.sources import launch

#: The flavour without the library; the JSON rows call it "bare".
UNPREPARED = "bare"
#: flavour -> (flavour of the library, LOCKTOP_LEVEL), in the order of the table
FLAVOURS: dict[str, tuple[str, str] | None] = {
    UNPREPARED: None,
    "nop": ("nop", ""),
    "dormant": ("", "dormant"),
    "contended": ("", "contended"),
    "blocks": ("", "blocks"),
    "all": ("", "all"),
}
#: Variables that a run sets itself.
_OF_A_RUN = frozenset(
    {"LOCKTOP_LEVEL", "LOCKTOP_CALLS", "LOCKTOP_CALLS_MATCH", "LOCKTOP_CALLS_MIN_US"}
)
_PATIENCE_S = 300  # the warm-up of "deep-wait" takes a minute on a busy machine


class Case(Struct, frozen=True):
    """A primitive and a number of threads that use it."""

    primitive: str
    operation: str  # description of one operation
    threads: int


class Work(Struct, frozen=True):
    """The work of threads that fight for a lock, in steps of step_ns()."""

    inside: int  # with the lock
    apart: int  # without the lock


class Way(Struct, frozen=True):
    """How to run the benchmark program."""

    prefix: tuple[str, ...]  # a command that runs the program
    environment: dict[str, str]


class RunFigures(Struct, frozen=True):
    """The figures of one run."""

    ns: float  # wall time of one operation
    ticks: float  # ticks of the processor's counter for one operation
    ticks_hz: float  # the counter's rate
    ticks_read_ns: float  # time that one reading of the counter adds to a lock and an unlock


def path() -> Path:
    """Return the program's path. Raises LocktopError when this installation has none."""
    import locktop

    for directory in locktop.__path__:
        program = Path(directory) / "bin" / "locktop-bench"
        if program.is_file():
            return program.resolve()
    raise LocktopError("locktop-bench is missing from this installation; install locktop again")


def cases() -> list[Case]:
    """Return all cases, in the order of the table. Raises LocktopError."""
    command = [str(path()), "list"]
    return [
        Case(
            primitive=str(listed["name"]), operation=str(listed["operation"]), threads=int(threads)
        )
        for listed in _answer(command, environment(UNPREPARED), _PATIENCE_S)
        for threads in listed["threads"]
    ]


def step_ns() -> float:
    """Return the time of one step of a fighter's work. Raises LocktopError."""
    command = [str(path()), "step"]
    try:
        return float(_answer(command, environment(UNPREPARED), _PATIENCE_S)["step_ns"])
    except (KeyError, TypeError, ValueError) as error:
        raise _failure(command, error) from error


def call_pair_ns(variables: dict[str, str], seconds: float) -> float:
    """Return what the begin and the end of an instrumented function cost, ns. Raises LocktopError.

    ``variables``: the environment of the run.
    """
    command = [str(path()), "calls", str(seconds)]
    try:
        return float(_answer(command, variables, _PATIENCE_S + 10 * seconds)["ns"])
    except (KeyError, TypeError, ValueError) as error:
        raise _failure(command, error) from error


def cost(case: Case, flavour: str, seconds: float) -> RunFigures:
    """Measure a case for about ``seconds``. Raises LocktopError.

    ``flavour``: a key of FLAVOURS.
    """
    return run(case, way(flavour), seconds)


def run(case: Case, way: Way, seconds: float, work: Work | None = None) -> RunFigures:
    """Measure a case for about ``seconds``. Raises LocktopError.

    ``work``: the work of threads that fight; None for the program's own.
    """
    command = [*way.prefix, str(path()), "cost", case.primitive, str(case.threads), str(seconds)]
    if work:
        command += [str(work.inside), str(work.apart)]
    said = _answer(command, way.environment, _PATIENCE_S + 10 * seconds)
    try:
        return RunFigures(**{name: float(said[name]) for name in RunFigures.__struct_fields__})
    except (KeyError, TypeError, ValueError) as error:
        raise _failure(command, error) from error


def profile_answer(*arguments: str) -> Any:
    """Return what the program says of profiles, with the library preloaded. Raises LocktopError."""
    return _answer([str(path()), *arguments], environment("contended"), _PATIENCE_S)


def way(flavour: str) -> Way:
    """Return the way to run with a flavour of this library, a key of FLAVOURS."""
    return Way((), environment(flavour))


def way_with(library: Path) -> Way:
    """Return the way to run with another library preloaded, and without this one."""
    variables = environment(UNPREPARED)
    preloads = [str(library.resolve()), *variables.get("LD_PRELOAD", "").split(":")]
    return Way((), variables | {"LD_PRELOAD": ":".join(name for name in preloads if name)})


def way_through(command: str) -> Way:
    """Return the way to run through another command, and without this library."""
    return Way((command,), environment(UNPREPARED))


def environment(flavour: str) -> dict[str, str]:
    """Return the environment of a run. Preloads of other libraries stay in every environment."""
    variables = {key: value for key, value in os.environ.items() if key not in _OF_A_RUN}
    names = variables.pop("LD_PRELOAD", "").replace(":", " ").split()
    preloads = [name for name in names if not Path(name).name.startswith("liblocktop")]
    if chosen := FLAVOURS[flavour]:
        library, level = chosen
        preloads.insert(0, str(launch.library(library)))
        if level:
            variables["LOCKTOP_LEVEL"] = level
    if preloads:
        variables["LD_PRELOAD"] = ":".join(preloads)
    return variables


def _answer(command: Sequence[str], variables: dict[str, str], patience_s: float) -> Any:
    try:
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=patience_s, check=True
        )
        return json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise _failure(command, error) from error


def _failure(command: Sequence[str], error: Exception) -> LocktopError:
    said = str(getattr(error, "stderr", None) or error)
    return LocktopError(f"`{' '.join(command)}` failed: {said.strip()}")
