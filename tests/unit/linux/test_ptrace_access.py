"""The missing right, from the facts that the kernel checks, and the advice."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path

import pytest
from msgspec.structs import replace
from support.rights import NOBODY, as_nobody

from locktop.collector.linux import procfs, ptrace_access
from locktop.collector.linux.procfs import Credentials
from locktop.collector.linux.ptrace_access import AccessFacts, Obstacle

ALL = (1 << 41) - 1
TRACE = 1 << 19  # CAP_SYS_PTRACE


def user(uid: int, capabilities: int = 0, gid: int | None = None) -> Credentials:
    gids = (uid if gid is None else gid,) * 4
    return Credentials((uid,) * 4, gids, capabilities, capabilities)


ANN, BOB, ROOT = user(1000), user(1001), user(0, ALL)
CONTAINED = user(0, 0xA80425FB)  # Docker's root
TWO = Credentials((1000, 0, 0, 0), (1000,) * 4, 0, 0)
OWN = AccessFacts(ANN, ANN, is_dumpable=True, same_namespace=True)

BARS = {
    "another user's": (replace(OWN, theirs=BOB), Obstacle.USER),
    "root's": (replace(OWN, theirs=ROOT), Obstacle.USER),
    "of another group": (replace(OWN, theirs=user(1000, gid=5)), Obstacle.GROUP),
    "of two users": (replace(OWN, theirs=TWO), Obstacle.USERS),
    "undumpable": (replace(OWN, is_dumpable=False), Obstacle.UNDUMPABLE),
    "of another namespace": (replace(OWN, same_namespace=False), Obstacle.NAMESPACE),
    "with a capability": (replace(OWN, theirs=user(1000, 1 << 10)), Obstacle.CAPABILITIES),
    "free to see": (OWN, Obstacle.OTHER),
    "for a container's root": (replace(OWN, ours=CONTAINED, theirs=ANN), Obstacle.USER),
    "for root, in another namespace": (
        replace(OWN, ours=ROOT, same_namespace=False),
        Obstacle.USER,
    ),
    "for root": (replace(OWN, ours=ROOT), Obstacle.OTHER),
    "for one with the capability": (replace(OWN, ours=user(1001, TRACE)), Obstacle.OTHER),
}


@pytest.mark.parametrize("name", BARS)
@pytest.mark.parametrize("to_trace", [True, False])
def test_each_refusal_names_the_missing_right(name: str, to_trace: bool) -> None:
    known, wanted = BARS[name]
    assert ptrace_access.obstacle(known, to_trace) is wanted


def test_an_undumpable_process_of_root_is_found_by_elimination() -> None:
    known = AccessFacts(CONTAINED, CONTAINED)  # root owns the files in /proc of such a process
    assert ptrace_access.obstacle(known, to_trace=False) is Obstacle.UNDUMPABLE
    assert ptrace_access.obstacle(known, to_trace=True) is Obstacle.OTHER, (
        "the kernel granted the first step"
    )
    assert ptrace_access.obstacle(replace(known, scope=1), to_trace=True) is Obstacle.YAMA


@pytest.mark.parametrize("scope", [0, 1, 2, 3])
def test_yama_refuses_tracing_alone(scope: int) -> None:
    known = replace(OWN, scope=scope)
    assert ptrace_access.obstacle(known, to_trace=True) is (
        Obstacle.YAMA if scope else Obstacle.OTHER
    )
    assert ptrace_access.obstacle(known, to_trace=False) is Obstacle.OTHER
    as_root = replace(known, ours=ROOT)
    assert ptrace_access.obstacle(as_root, to_trace=True) is (
        Obstacle.YAMA if scope == 3 else Obstacle.OTHER
    )
    undumpable = replace(known, is_dumpable=False)
    assert ptrace_access.obstacle(undumpable, to_trace=True) is Obstacle.UNDUMPABLE, (
        "the capability is checked first"
    )


@pytest.mark.parametrize(
    ("text", "scope"), [("0\n", 0), ("1\n", 1), ("3\n", 3), ("x", 0), (None, 0)]
)
def test_the_yama_setting_is_read(text: str | None, scope: int, tmp_path: Path) -> None:
    path = tmp_path / "ptrace_scope"
    if text is not None:
        path.write_text(text)
    assert ptrace_access.yama_scope(str(path)) == scope


PRELOAD = "start it with `locktop run"
ZERO = "set that to 0"
ANY = "LOCKTOP_PTRACER=any"
AS_ROOT = "run locktop as root"
CAPABILITY = "CAP_SYS_PTRACE"


@pytest.mark.parametrize(
    ("scope", "watched", "who", "cures"),
    [
        (1, False, "root and its ancestors alone", {AS_ROOT, ZERO, PRELOAD}),
        (1, True, "root and its ancestors alone", {AS_ROOT, ZERO, ANY}),
        (2, False, "root alone", {AS_ROOT, ZERO, PRELOAD}),
        (2, True, "root alone", {AS_ROOT, ZERO}),
        (3, False, "nobody until the next boot", {PRELOAD}),
        (3, True, "nobody until the next boot", set()),
    ],
)
def test_the_advice_follows_the_yama_setting(
    scope: int, watched: bool, who: str, cures: set[str]
) -> None:
    said = ptrace_access.describe(
        replace(OWN, scope=scope), Obstacle.YAMA, "ann (uid 1000)", watched
    )
    assert f"may be traced by {who} (kernel.yama.ptrace_scope is {scope})" in said
    assert {cure for cure in (AS_ROOT, ZERO, PRELOAD, ANY) if cure in said} == cures


def said_of(known: AccessFacts) -> str:
    return ptrace_access.describe(
        known, ptrace_access.obstacle(known, to_trace=True), "bob (uid 1001)", False
    )


def test_the_advised_user_has_the_right() -> None:
    other = replace(OWN, theirs=BOB)
    assert said_of(other) == "belongs to user bob (uid 1001); run locktop as that user or as root"
    for known in (
        replace(other, is_dumpable=False),
        replace(other, theirs=user(1001, TRACE)),
        replace(other, theirs=ROOT),
    ):
        assert said_of(known) == f"belongs to user bob (uid 1001); {AS_ROOT}"
    library = "if it runs with the library (kernel.yama.ptrace_scope is"
    assert f"{AS_ROOT}, or as that user {library} 1)" in said_of(replace(other, scope=1))
    assert f"as that user or as root {library} 3)" in said_of(replace(other, scope=3))


@pytest.mark.parametrize("theirs", [ANN, user(0, ALL)])
def test_a_limited_root_reads_the_missing_right(theirs: Credentials) -> None:
    said = said_of(replace(OWN, ours=CONTAINED, theirs=theirs))
    assert CAPABILITY in said
    assert AS_ROOT not in said


def test_root_is_never_advised_to_become_root() -> None:
    for known, _ in BARS.values():
        assert AS_ROOT not in said_of(replace(known, ours=ROOT)), known
        assert AS_ROOT not in said_of(replace(known, ours=CONTAINED)), known


@pytest.mark.parametrize("owner", [NOBODY, 0])
def test_a_process_without_memory_is_ending(owner: int) -> None:
    """The kernel refuses to show its files, which is nobody's rule."""
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")
    ended = subprocess.Popen(["true"], user=owner, group=owner, extra_groups=[])
    os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
    ask = partial(ptrace_access.refusal, ended.pid, "somebody", to_trace=True)
    assert (as_nobody(ask) if owner else ask()) == "is ending"
    ended.wait()


#: A program whose main thread ends alone, while another thread lives.
_LEAVES = """
import ctypes, sys, threading
threading.Thread(target=sys.stdin.read).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_process_without_its_main_thread_is_not_ending() -> None:
    python = Path("/usr/bin/python3")
    if os.geteuid() != 0 or not python.exists():
        pytest.skip("only root may become another user, who runs the Python of the system")
    command = [str(python), "-c", _LEAVES]
    with subprocess.Popen(
        command, user=NOBODY, group=NOBODY, extra_groups=[], stdin=subprocess.PIPE
    ) as program:
        while procfs.stat(program.pid).state != "Z":
            assert program.poll() is None
        assert not ptrace_access.is_ending(program.pid)
        ask = partial(ptrace_access.refusal, program.pid, "somebody", to_trace=True)
        assert as_nobody(ask).startswith("has lost its main thread; run locktop as root")
        program.communicate()
        assert program.returncode == 0
