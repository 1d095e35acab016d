"""The special needs of single tests, as glibc's makefiles provide them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: Seconds until a test counts as hung. The slowest tests take 50 s on a busy machine.
LIMIT_S = 120


@dataclass(frozen=True)
class Particular:
    """How to build and run one test, or one shared library that tests open."""

    flags: tuple[str, ...] = ()
    """Flags for the compiler."""
    parts: tuple[str, ...] = ()
    """Other sources to link: modules as shared libraries, all others as objects."""
    arguments: tuple[str, ...] = ()
    """``{program}`` is the path of the test, ``{directory}`` its working directory."""
    environment: dict[str, str] = field(default_factory=dict)
    """``{bin}`` is the directory of all programs."""
    limit_s: int = LIMIT_S


ITSELF = ("--command", "exec {program}")

PARTICULARS = {
    "tst-_res1": Particular(parts=("tst-_res1mod1", "tst-_res1mod2")),
    "tst-_res1mod2": Particular(parts=("tst-_res1mod1",)),
    "tst-audit-threads": Particular(
        parts=("tst-audit-threads-mod2",),
        environment={"LD_AUDIT": "{bin}/tst-audit-threads-mod1.so"},
    ),
    "tst-cancel7": Particular(arguments=ITSELF),
    "tst-cancelx7": Particular(arguments=ITSELF),
    "tst-cleanup2": Particular(flags=("-fno-builtin",)),
    "tst-cleanup4": Particular(parts=("tst-cleanup4aux",)),
    "tst-cleanupx2": Particular(flags=("-fno-builtin",)),
    "tst-cleanupx4": Particular(parts=("tst-cleanupx4aux",)),
    "tst-compat-forwarder": Particular(parts=("tst-compat-forwarder-mod",)),
    "tst-exec4": Particular(arguments=("{program}",)),
    "tst-fini1": Particular(parts=("tst-fini1mod",)),
    "tst-mqueue7": Particular(arguments=("--", "{program}")),
    "tst-mutex10": Particular(environment={"GLIBC_TUNABLES": "glibc.elision.enable=1"}),
    "tst-oddstacklimit": Particular(arguments=("--command", "exec {bin}/tst-basic1")),
    # 300,000 threads, one after the other.
    "tst-pthread-timedlock-lockloop": Particular(limit_s=300),
    # 32,768 forks, of which each child locks.
    "tst-robust-fork": Particular(limit_s=300),
    "tst-stackguard1": Particular(arguments=("--command", "{program} --child")),
    "tst-tls5": Particular(flags=("-Wl,--no-as-needed",), parts=("tst-tls5mod",)),
    "tst-umask1": Particular(arguments=("{directory}/umask1",)),
}

#: Families that glibc compiles with other flags.
FAMILIES = (
    (r"tst-(cancel|cleanup|once)x(?!1$)", "-fexceptions"),  # unwinding runs their cleanup code
    (r"tst-oncey", "-fno-exceptions -fno-asynchronous-unwind-tables"),
    (r"tst-initializers1-(?P<standard>\w+)", r"-std=\g<standard>"),
)


def particular(name: str) -> Particular:
    """Return the special needs of a test; most tests have none."""
    return PARTICULARS.get(name, Particular())


def flags_of(name: str) -> list[str]:
    """Return the compiler flags of one test."""
    flags = list(particular(name).flags)
    for pattern, added in FAMILIES:
        if match := re.match(pattern, name):
            flags += match.expand(added).split()
    return flags


def copies_of(module: str) -> list[str]:
    """Return the names under which a test opens further copies of a shared library."""
    if module != "tst-stack4mod":
        return []
    return [f"{module}-{i}-{j}.so" for i in range(20) for j in range(20)]
