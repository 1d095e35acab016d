"""Finding and opening a process's shared memory, and saying why when there is none."""

from __future__ import annotations

import errno
import os
import re
import stat
from dataclasses import dataclass

from locktop.collector import native
from locktop.collector.errors import LocktopError
from locktop.collector.linux import procfs, ptrace_access
from locktop.collector.linux.target import Target, check_proc, find_process, user_name
from locktop.collector.sanitize import clean
from locktop.collector.shm import layout
from locktop.collector.shm.segment import SharedMemory
from locktop.collector.sources import preloadable

LIBRARY = b"/liblocktop.so"
_YOUNG_S = 1.0
_REASON = b"/memfd:locktop: "
_ERRNO = re.compile(r"\(errno (\d+)\)$")
_LEFT_OUT = "LOCKTOP_CHILDREN leaves out this child of a watched process"
_ELSEWHERE = "set LOCKTOP_DIR to a directory that it may write to"
_MAKE_ROOM = "make room there (or set LOCKTOP_DIR to a directory that has it)"
#: By what the library gives as the error (native/src/shm/file.c).
_CURES = {
    errno.ENOSPC: _MAKE_ROOM,
    errno.EDQUOT: _MAKE_ROOM,
    errno.EFBIG: "raise LOCKTOP_MEMORY where it is set, else the limit with `ulimit -f unlimited`",
    errno.EMFILE: "raise the limit with `ulimit -n`",
    errno.ENFILE: "raise fs.file-max with sysctl",
    errno.ENOMEM: "raise its limits of memory (`ulimit -v`, the container's)",
}


class NotPreloadedError(LocktopError):
    """The process has no shared memory; ``why`` says why, and what to do."""

    def __init__(self, target: Target, why: str) -> None:
        super().__init__(f"process {target} cannot be watched: {why}")
        self.why = why
        #: Whether it began a moment ago, and was told to load the library: that may come yet.
        self.is_young = procfs.age_s(target.start_time) < _YOUNG_S and _is_to_load_it(target.pid)


def _is_to_load_it(pid: int) -> bool:
    try:
        return LIBRARY.decode() in (procfs.environment(pid, "LD_PRELOAD") or "")
    except OSError:
        return False


def open_memory(target: Target) -> SharedMemory:
    """Open and check the process's file. Raises LocktopError with the reason there is none."""
    refused: LocktopError | None = None
    for path in paths(target):
        try:
            return open_file(path, target)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError:
            refused = refused or _not_opened(path, target)
        except OSError as error:
            refused = LocktopError(f"cannot open {path}: {error.strerror}")
    raise refused or NotPreloadedError(target, why_none(target))


def paths(target: Target) -> list[str]:
    """Return where the file may be, the likeliest first."""
    name = f"locktop-{target.own_pid}-{target.start_time}"
    # The second: it executed another program as another user, who may not remove the first. The
    # last: where it runs there is no /proc to tell when it began.
    names = (f"{name}-{target.uid}", name, f"locktop-{target.own_pid}-0")
    theirs = ["/dev/shm"]
    try:
        if set_there := procfs.environment(target.pid, "LOCKTOP_DIR"):
            theirs.insert(0, os.path.join("/", set_there))
    except OSError:
        pass  # not ours; its default directory may still tell
    directories = [chosen] if (chosen := os.environ.get("LOCKTOP_DIR")) else []
    # Its root may be hidden from us, and may have been ours when it made the file.
    for root in (f"{procfs.shared(target.pid)}/root", ""):
        directories += [root + directory for directory in theirs]
    return [os.path.join(directory, name) for directory in directories for name in names]


def open_file(path: str, target: Target) -> SharedMemory:
    """Open one file and check that it is this process's. Raises OSError or LocktopError."""
    # O_NONBLOCK: a FIFO of that name must not make us wait for its writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LocktopError(f"{path} is a symbolic link, not a shared memory file") from None
        raise
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            raise LocktopError(f"{path} is not a regular file")
        if about.st_uid not in (target.uid, 0):
            raise LocktopError(
                f"{path} belongs to user {user_name(about.st_uid)}, not to that of process {target}"
            )
        memory = SharedMemory(fd, path)
        check_header(memory, target)
        check_mapped(memory, target)
    except BaseException:
        os.close(fd)
        raise
    return memory


def check_header(memory: SharedMemory, target: Target) -> layout.Header:
    """Return the header of a file of ours; raises LocktopError where it differs."""
    if memory.size < native.lib.LT_ARENA_OFFSET:
        raise memory.broken(f"it has {memory.size} bytes")
    header = memory.header()
    if header.magic != layout.MAGIC:
        if header.magic == bytes(8):
            raise LocktopError(f"process {target} is just starting; try again")
        raise LocktopError(f"{memory.path} is not a file of locktop's")
    if header.version != native.lib.LT_ABI_VERSION:
        raise LocktopError(
            f"process {target} runs with another version of the library (layout"
            f" {header.version}, this is {native.lib.LT_ABI_VERSION}); use that version's locktop"
        )
    if header.byte_order != native.lib.LT_BYTE_ORDER or header.word_bits != 64:
        raise LocktopError(f"{memory.path} was written on another kind of machine")
    if header.header_size != layout.HEADER.size:
        raise memory.broken(f"its header has {header.header_size} bytes")
    is_its = header.pid == target.own_pid and header.start_time in (target.start_time, 0)
    if not is_its:
        raise LocktopError(f"{memory.path} was written by another process, {header.pid}")
    if memory.size < header.limit:
        raise memory.broken(f"{memory.size} bytes are left of {header.limit}")
    return header


def check_mapped(memory: SharedMemory, target: Target) -> None:
    """Raise FileNotFoundError when the process has not mapped the file: pid and start time outlive
    an exec, and so may the file of the program that ran before."""
    try:
        maps = procfs.maps(target.pid)
    except OSError:
        maps = b""  # not ours to see
    if not maps and memory.header().start_time:
        return  # the header must do; or it has just ended, and what it left can still be read
    inode = os.fstat(memory.fd).st_ino
    name = os.path.basename(memory.path).encode()
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and int(fields[4]) == inode and name in fields[5]:
            return
    raise FileNotFoundError(memory.path)


def not_ours(target: Target) -> LocktopError:
    """Return the error for a process of which not even may be seen where its files lie."""
    return _refused(target, to_trace=False)


def not_ours_to_trace(target: Target) -> LocktopError:
    """Return the error for a process that may be looked at, but not into."""
    return _refused(target, to_trace=True)


def _refused(target: Target, to_trace: bool) -> LocktopError:
    why = ptrace_access.refusal(target.pid, user_name(target.uid), to_trace)
    return LocktopError(f"process {target} {why}")


def _not_opened(path: str, target: Target) -> LocktopError:
    try:
        owner = os.stat(path).st_uid
    except OSError:
        return not_ours(target)
    # It was made before the process changed its user.
    cure = "as that user or as root" if owner else "as root"
    return LocktopError(f"{path} belongs to user {user_name(owner)}; run locktop {cure}")


def notes(target: Target) -> tuple[str, ...]:
    """Return what is to be said of the numbers of threads that are shown."""
    if target.own_pid == target.pid:
        return ()
    return (
        "thread ids are those of the process's own pid namespace, in which it is process"
        f" {target.own_pid}",
    )


def why_none(target: Target) -> str:
    """Return why the process has no shared memory, and what to do."""
    try:
        maps = procfs.maps(target.pid)
    except PermissionError:
        raise not_ours(target) from None
    except OSError:
        return "it has just exited"
    reason = reason_left(maps)
    if reason == _LEFT_OUT:
        return f"{reason}; start that one without it, or with this program's name in it"
    if reason:
        return f"the library is loaded but could not start: {reason}; {remedy(reason)}"
    if LIBRARY in maps and procfs.in_our_namespace(target.pid, "time") is False:
        return (
            "it runs in another time namespace, where it began at another time: its file is not"
            " found, nor could its times be compared; run locktop there"
        )
    if LIBRARY in maps:
        return (
            f"the library is loaded but its file {paths(target)[-2]} is not there; a forked process"
            " makes it at its first use of a lock (if LOCKTOP_CHILDREN does not leave it out), else"
            " it was removed"
        )
    return why_not_preloaded(target.pid)


def reason_left(maps: bytes) -> str:
    """Return the reason that a library which could not start left as a mapping's name."""
    for line in maps.splitlines():
        at = line.find(_REASON)
        if at >= 0:
            return clean(line[at + len(_REASON) :].removesuffix(b" (deleted)"))
    return ""


def remedy(reason: str) -> str:
    """Return what to do about a reason that ``reason_left`` found."""
    found = _ERRNO.search(reason)
    cure = _CURES.get(int(found[1]), _ELSEWHERE) if found else _ELSEWHERE
    return f"{cure} and start the program again"


def why_not_preloaded(pid: int) -> str:
    """Return why a process without the library has none, and what to do."""
    try:
        reason = preloadable.why_not_preloadable(f"{procfs.shared(pid)}/exe")
        if not reason and procfs.gained_privilege(pid):
            reason = (
                "it is setuid or has capabilities: the loader ignores a preloaded library there;"
                " start it as the user that it becomes"
            )
    except (OSError, ValueError):
        reason = ""
    return reason or f"it runs without the library; {ptrace_access.HOW_TO_PRELOAD}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A process that could be looked at, as the picker and ``locktop list`` show it."""

    pid: int
    comm: str
    cmdline: str
    user: str
    threads: int
    preloaded: bool
    why: str  # what stands in the way; "" where nothing does


def candidates() -> list[Candidate]:
    """Return the processes that this user may look at: preloaded ones first, then by pid."""
    check_proc()
    found = (_candidate(pid) for pid in procfs.pids() if pid != os.getpid())
    return sorted((c for c in found if c), key=lambda c: (not c.preloaded, c.pid))


def _candidate(pid: int) -> Candidate | None:
    try:
        arguments = procfs.cmdline(pid)
        if not arguments:
            return None  # a kernel thread, or exiting
        maps = procfs.maps(pid)
        target, threads = find_process(pid), procfs.status(pid).threads
    except (OSError, LocktopError):
        return None
    why = "" if LIBRARY in maps else why_not_preloaded(pid)
    if not why and not any(os.path.exists(path) for path in paths(target)):
        why = why_none(target)
    return Candidate(
        pid, target.comm, " ".join(arguments), _short_user(target.uid), threads, not why, why
    )


def _short_user(uid: int) -> str:
    return user_name(uid).partition(" (")[0]
