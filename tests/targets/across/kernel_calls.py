"""System calls that Python has no names for, as the scenarios of across need them."""

from __future__ import annotations

import ctypes
import os
import struct
import tempfile

LIBC = ctypes.CDLL(None, use_errno=True)
PTRACE_TRACEME, PTRACE_CONT, PTRACE_ATTACH = 0, 7, 16
GETPID, GETVAL = 11, 12  # semctl(2)
_NEW_MOUNTS, _PRIVATE = 0x20000, 1 << 18 | 1 << 14  # CLONE_NEWNS; MS_PRIVATE | MS_REC
_INIT, _GETATTR, _OPEN, _READ, _FORGET = 26, 3, 14, 15, 2  # include/uapi/linux/fuse.h
_DIRECT_IO, _NOT_THERE = 1, -38
_MODE = 0o100644
_IPC_PRIVATE, _IPC_RMID, _IPC_NOWAIT = 0, 0, 0o4000
MESSAGE = struct.pack("=q4096x", 1)


class QueueSizes(ctypes.Structure):
    """struct mq_attr."""

    _fields_ = [(name, ctypes.c_long) for name in ("flags", "messages", "size", "now")] + [
        ("reserved", ctypes.c_long * 4)
    ]


def queue(has_name=False):
    """Return a new POSIX queue for one message of 8 bytes; open to others if it has a name."""
    name = f"/locktop-{os.getpid()}-{os.urandom(4).hex()}".encode()
    flags = os.O_CREAT | os.O_RDWR
    number = LIBC.mq_open(name, flags, 0o600, ctypes.byref(QueueSizes(0, 1, 8, 0)))
    assert number >= 0, os.strerror(ctypes.get_errno())
    if not has_name:
        LIBC.mq_unlink(name)
    return number


def receive(number):
    """Receive a message from a POSIX queue."""
    LIBC.mq_receive(number, ctypes.create_string_buffer(8), 8, None)


def send(number):
    """Send a message to a POSIX queue."""
    LIBC.mq_send(number, b"x", 1, 0)


def serve_file(read):
    """Mount a file system of one file, and serve it; call read() at each request to read.

    Returns:
        the function that serves, and the path of the file. The mount ends with the process, as
        it has mounts of its own from now on.
    """
    path = tempfile.mkstemp()[1]
    assert LIBC.unshare(_NEW_MOUNTS) == 0, os.strerror(ctypes.get_errno())
    LIBC.mount(None, b"/", None, _PRIVATE, None)
    device = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
    options = f"fd={device},rootmode={_MODE:o},user_id=0,group_id=0".encode()
    assert LIBC.mount(b"locktop", path.encode(), b"fuse", 0, options) == 0, os.strerror(
        ctypes.get_errno()
    )

    def serve():
        while True:
            request = os.read(device, 1 << 18)
            _, operation, unique = struct.unpack_from("=IIQ", request)
            if operation == _READ:
                read()
            if operation != _FORGET:
                error, body = _answer(operation)
                os.write(device, struct.pack("=IiQ", 16 + len(body), error, unique) + body)

    return serve, path, device


def _answer(operation):
    if operation == _INIT:
        return 0, struct.pack("=IIIIHHIIHHI28x", 7, 31, 1 << 16, 0, 12, 9, 1 << 16, 1, 0, 0, 0)
    if operation == _GETATTR:
        attributes = struct.pack("=QQQ36x7I", 1, 4096, 8, _MODE, 1, 0, 0, 0, 4096, 0)
        return 0, struct.pack("=QII", 3600, 0, 0) + attributes
    if operation == _OPEN:
        return 0, struct.pack("=QII", 1, _DIRECT_IO, 0)
    return (0, b"") if operation == _READ else (_NOT_THERE, b"")


def _removed_at_the_end(remove):
    """Call a function when this process has ended: the kernel keeps objects of System V.

    A process of another group reads from a pipe until then.
    """
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(writing)
            os.closerange(0, 3)
            os.read(reading, 1)
            remove()
        os._exit(0)
    os.wait()
    os.close(reading)


def system_v_queue():
    """Return a System V queue."""
    number = LIBC.msgget(_IPC_PRIVATE, 0o600)
    _removed_at_the_end(lambda: LIBC.msgctl(number, _IPC_RMID, None))
    return number


def send_to_system_v(number):
    """Send a message to a System V queue."""
    LIBC.msgsnd(number, MESSAGE, len(MESSAGE) - 8, 0)


def receive_from_system_v(number):
    """Receive a message from a System V queue."""
    LIBC.msgrcv(number, ctypes.create_string_buffer(len(MESSAGE)), len(MESSAGE) - 8, 0, 0)


def fill_system_v_queue(number):
    """Send messages to a System V queue until there is no more room."""
    while LIBC.msgsnd(number, MESSAGE, len(MESSAGE) - 8, _IPC_NOWAIT) == 0:
        pass


def vfork():
    """Fork a child in the memory of this process, which waits until the child ends.

    The child must not return to the caller of its caller. Returns: 0 in the child.
    """
    return ctypes.PyDLL(None).vfork()


def system_v_semaphore():
    """Return a System V semaphore of value 0."""
    semaphores = LIBC.semget(_IPC_PRIVATE, 1, 0o600)
    _removed_at_the_end(lambda: LIBC.semctl(semaphores, 0, _IPC_RMID))
    return semaphores


def change_semaphore(semaphores, by):
    """Add to a System V semaphore, or take from it."""
    LIBC.semop(semaphores, struct.pack("=Hhh", 0, by, 0), 1)
