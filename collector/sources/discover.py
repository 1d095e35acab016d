"""The search for a process's shared memory, and the reason if there is none."""

from __future__ import annotations

import errno
import os
import re
import stat

from msgspec import Struct

from locktop.collector import native
from locktop.collector.errors import LocktopError, reason_of
from locktop.collector.linux import procfs, ptrace_access
from locktop.collector.linux.command_line import program_words
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
#: The library's own text, LT_CHECKED in native/src/interpose/process.c.
_CHECKED = "another tool checks this program, and must see its locks as they are"
_ELSEWHERE = "set LOCKTOP_DIR to a directory that it may write to"
_MAKE_ROOM = "make room there (or set LOCKTOP_DIR to a directory that has it)"
#: By the error number that the library reports (native/src/shm/file.c).
_CURES = {
    errno.ENOSPC: _MAKE_ROOM,
    errno.EDQUOT: _MAKE_ROOM,
    errno.EFBIG: "raise LOCKTOP_MEMORY where it is set, else the limit with `ulimit -f unlimited`",
    errno.EMFILE: "raise the limit with `ulimit -n`",
    errno.ENFILE: "raise fs.file-max with sysctl",
    errno.ENOMEM: "raise its limits of memory (`ulimit -v`, the container's)",
}


class NotPreloadedError(LocktopError):
    """The process has no shared memory; ``why`` holds the reason and the remedy."""

    def __init__(self, target: Target, why: str) -> None:
        super().__init__(f"process {target} cannot be watched: {why}")
        self.why = why
        #: Whether the process is young and has the library in LD_PRELOAD: it may still load the
        #: library.
        self.is_young = procfs.age_s(target.start_time) < _YOUNG_S and _loads_library(target.pid)


def _loads_library(pid: int) -> bool:
    try:
        return LIBRARY.decode() in (procfs.environment(pid, "LD_PRELOAD") or "")
    except OSError:
        return False


def open_memory(target: Target) -> SharedMemory:
    """Open and check the file of the process.

    A file, link or FIFO of another user has no effect: anybody may put one into /dev/shm.

    Raises:
        NotPreloadedError: there is no file.
        LocktopError: locktop cannot use the file.
    """
    refused: LocktopError | None = None
    for path in paths(target):
        try:
            return open_file(path, target)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except PermissionError:
            if not _is_strangers(path, target):
                refused = refused or _open_error(path, target)
        except OSError as error:
            refused = LocktopError(f"cannot open {path}: {reason_of(error)}")
    raise refused or NotPreloadedError(target, why_no_memory(target))


def paths(target: Target) -> list[str]:
    """Return the possible paths of the file, the likeliest first."""
    name = f"locktop-{target.own_pid}-{target.start_time}"
    # The second name: the process executed a program as another user, who may not remove the first
    # file. The last name: the process sees no /proc, so its start time is unknown there.
    names = (f"{name}-{target.uid}", name, f"locktop-{target.own_pid}-0")
    theirs = ["/dev/shm"]
    try:
        if set_there := procfs.environment(target.pid, "LOCKTOP_DIR"):
            theirs.insert(0, os.path.join("/", set_there))
    except OSError:
        pass  # locktop may not read the environment; the default directory may still have the file
    directories = [chosen] if (chosen := os.environ.get("LOCKTOP_DIR")) else []
    # locktop may not see the process's root, or the process had locktop's root when it made the
    # file.
    for root in (f"{procfs.shared_directory(target.pid)}/root", ""):
        directories += [root + directory for directory in theirs]
    return [os.path.join(directory, name) for directory in directories for name in names]


def open_file(path: str, target: Target) -> SharedMemory:
    """Open one file and check that it belongs to the process.

    Raises:
        FileNotFoundError: there is no such file, or it belongs to a stranger.
        OSError: the file cannot be opened.
        LocktopError: the file does not belong to the process, or is damaged.
    """
    if _is_strangers(path, target):
        raise FileNotFoundError(path)
    # O_NONBLOCK: for a FIFO of that name, open() must not wait for a writer.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        fd = os.open(path, flags)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LocktopError(f"{path} is a symbolic link, not a shared memory file") from None
        raise
    try:
        about = os.fstat(fd)
        if about.st_uid not in (target.uid, 0):  # put there in this moment
            raise FileNotFoundError(path)
        if not stat.S_ISREG(about.st_mode):
            raise LocktopError(f"{path} is not a regular file")
        memory = SharedMemory(fd, path)
        check_header(memory, target)
        check_mapped(memory, target)
    except BaseException:
        os.close(fd)
        raise
    return memory


def _is_strangers(path: str, target: Target) -> bool:
    """Return whether the file belongs neither to the user of the process nor to root."""
    try:
        return os.lstat(path).st_uid not in (target.uid, 0)
    except OSError:
        return False


def check_header(memory: SharedMemory, target: Target) -> layout.Header:
    """Return the header of the file.

    Raises:
        LocktopError: the header does not belong to this process and this version.
    """
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
    """Check that the process has mapped the file.

    Pid and start time survive an exec, and so may the file of the program before.

    Raises:
        FileNotFoundError: the process has not mapped the file.
    """
    try:
        maps = procfs.maps(target.pid)
    except OSError:
        maps = b""  # locktop may not read the maps
    if not maps and memory.header().start_time:
        # The header alone must do. Or the process has just ended, and its file can still be read.
        return
    inode = os.fstat(memory.fd).st_ino
    name = os.path.basename(memory.path).encode()
    for line in maps.splitlines():
        fields = line.split(maxsplit=5)
        if len(fields) == 6 and int(fields[4]) == inode and name in fields[5]:
            return
    raise FileNotFoundError(memory.path)


def invisible_target_error(target: Target) -> LocktopError:
    """Return the error for a process whose files locktop may not even see."""
    return _refusal(target, to_trace=False)


def untraceable_error(target: Target) -> LocktopError:
    """Return the error for a process that locktop may see, but whose memory it may not read."""
    return _refusal(target, to_trace=True)


def _refusal(target: Target, to_trace: bool) -> LocktopError:
    why = ptrace_access.refusal(target.pid, user_name(target.uid), to_trace)
    return LocktopError(f"process {target} {why}")


def _open_error(path: str, target: Target) -> LocktopError:
    try:
        owner = os.stat(path).st_uid
    except OSError:
        return invisible_target_error(target)
    # The file is older than the process's change of user.
    cure = "as that user or as root" if owner else "as root"
    return LocktopError(f"{path} belongs to user {user_name(owner)}; run locktop {cure}")


def notes(target: Target) -> tuple[str, ...]:
    """Return the messages about the thread ids that are shown."""
    if target.own_pid == target.pid:
        return ()
    return (
        "thread ids are those of the process's own pid namespace, in which it is process"
        f" {target.own_pid}",
    )


def why_no_memory(target: Target) -> str:
    """Return why the process has no shared memory, and the remedy."""
    try:
        maps = procfs.maps(target.pid)
    except PermissionError:
        raise invisible_target_error(target) from None
    except OSError:
        return "it has just exited"
    reason = reason_left(maps)
    if reason == _LEFT_OUT:
        return f"{reason}; start that one without it, or with this program's name in it"
    if reason == _CHECKED:
        return f"{reason}; run it without ThreadSanitizer, or without Valgrind"
    if reason:
        return f"the library is loaded but could not start: {reason}; {remedy(reason)}"
    if LIBRARY in maps and procfs.shares_namespace(target.pid, "time") is False:
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
    """Return the reason of a failed start, which the library leaves as the name of a mapping."""
    for line in maps.splitlines():
        index = line.find(_REASON)
        if index >= 0:
            return clean(line[index + len(_REASON) :].removesuffix(b" (deleted)"))
    return ""


def remedy(reason: str) -> str:
    """Return the remedy for a reason that ``reason_left`` found."""
    match = _ERRNO.search(reason)
    cure = _CURES.get(int(match[1]), _ELSEWHERE) if match else _ELSEWHERE
    return f"{cure} and start the program again"


def why_not_preloaded(pid: int) -> str:
    """Return why a process without the library has none, and the remedy."""
    try:
        reason = preloadable.why_not_preloadable(f"{procfs.shared_directory(pid)}/exe")
        if not reason and procfs.gained_privilege(pid):
            reason = (
                "it is setuid or has capabilities: the loader ignores a preloaded library there;"
                " start it as the user that it becomes"
            )
    except (OSError, ValueError):
        reason = ""
    return reason or f"it runs without the library; {ptrace_access.HOW_TO_PRELOAD}"


class Candidate(Struct, frozen=True):
    """A process that locktop could watch, for the picker and ``locktop list``."""

    pid: int
    comm: str
    cmdline: str
    command: str  # the script or program, without the path of an interpreter, and its arguments
    user: str
    threads: int
    preloaded: bool
    why: str  # the obstacle; "" without one


def candidates() -> list[Candidate]:
    """Return the processes that this user may see: preloaded ones first, then by pid."""
    check_proc()
    processes = (_candidate(pid) for pid in procfs.pids() if pid != os.getpid())
    return sorted((c for c in processes if c), key=lambda c: (not c.preloaded, c.pid))


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
    if not why and not any(
        os.path.exists(path) and not _is_strangers(path, target) for path in paths(target)
    ):
        why = why_no_memory(target)
    return Candidate(
        pid=pid,
        comm=target.comm,
        cmdline=" ".join(arguments),
        command=" ".join(program_words(arguments)).strip(),
        user=user_name(target.uid).partition(" (")[0],
        threads=threads,
        preloaded=not why,
        why=why,
    )
