"""What single tests need beyond the usual, as glibc's makefiles give it to them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

#: Seconds until a test counts as hung. The slowest common ones take 50 on a busy machine.
LIMIT_S = 120


@dataclass(frozen=True)
class Particular:
    """How one test, or one of the shared libraries that tests open, is built and run."""

    flags: tuple[str, ...] = ()
    """For the compiler."""
    parts: tuple[str, ...] = ()
    """Other sources linked in: shared libraries where they are modules, else objects."""
    arguments: tuple[str, ...] = ()
    """``{program}`` is the test's own path, ``{directory}`` the one it runs in."""
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
    (r"tst-(cancel|cleanup|once)x(?!1$)", "-fexceptions"),  # unwinding runs what they clean up with
    (r"tst-oncey", "-fno-exceptions -fno-asynchronous-unwind-tables"),
    (r"tst-initializers1-(?P<standard>\w+)", r"-std=\g<standard>"),
)


def particular(name: str) -> Particular:
    """Return what the test of this name needs; most need nothing."""
    return PARTICULARS.get(name, Particular())


def flags_of(name: str) -> list[str]:
    """Return the flags for the compiler that a test has to itself."""
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
