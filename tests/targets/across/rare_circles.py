"""Processes that wait for each other for ever, at rare objects: `rare_circles.py SCENARIO`."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import socket
import tempfile

from kernel_calls import LIBC, PTRACE_TRACEME, queue, receive, send, serve_file, vfork
from process_scenarios import PLENTY, child, crosswise_pipes, main, ready, scenario, wait_for


@scenario
def both_receive_from_queues():
    first, second = queue(), queue()

    def other():
        receive(first)
        send(second)

    child(other)
    ready()
    receive(second)
    send(first)


@scenario
def sender_to_a_full_queue_whose_receiver_waits_for_its_end():
    number = queue()
    send(number)
    child(lambda: send(number))
    ready()
    os.wait()
    receive(number)


@scenario
def unlinked_fifos():
    directory = tempfile.mkdtemp()
    names = [os.path.join(directory, name) for name in ("a", "b")]
    for name in names:
        os.mkfifo(name)

    def other():
        reading, _writing = os.open(names[0], os.O_RDONLY), os.open(names[1], os.O_WRONLY)
        os.read(reading, 1)

    child(other)
    _writing, reading = os.open(names[0], os.O_WRONLY), os.open(names[1], os.O_RDONLY)
    for name in names:
        os.unlink(name)
    ready()
    os.read(reading, 1)


@scenario
def eventfds_in_polls():
    first, second = os.eventfd(0), os.eventfd(0)
    child(lambda: (wait_for(first), os.eventfd_write(second, 1)))
    ready()
    wait_for(second)
    os.eventfd_write(first, 1)


@scenario
def splice_from_the_reader_of_a_splice():
    def copy(reading, writing):
        LIBC.splice(reading, None, writing, None, ctypes.c_size_t(len(PLENTY)), 0)

    crosswise_pipes(copy)


@scenario
def tracer_reads_from_the_process_that_it_has_stopped():
    ours, theirs = socket.socketpair()

    def tracee():
        ours.close()
        LIBC.ptrace(PTRACE_TRACEME, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        theirs.send(b"x")

    os.waitpid(child(tracee), os.WUNTRACED)
    theirs.close()
    ready()
    ours.recv(1)


@scenario
def tracer_waits_for_the_lock_of_the_process_that_it_has_stopped():
    name = tempfile.mkstemp()[1]

    def tracee():
        fcntl.flock(os.open(name, os.O_RDWR), fcntl.LOCK_EX)
        LIBC.ptrace(PTRACE_TRACEME, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)

    os.waitpid(child(tracee), os.WUNTRACED)
    ready()
    fcntl.flock(os.open(name, os.O_RDWR), fcntl.LOCK_EX)


@scenario
def child_of_vfork_reads_from_its_parent():
    reading, writing = os.pipe()
    ready()
    if vfork() == 0:
        os.close(writing)
        os.read(reading, 1)
    os.write(writing, b"x")


@scenario
def child_of_vfork_waits_for_the_lock_of_its_parent():
    name = tempfile.mkstemp()[1]
    lock = os.open(name, os.O_RDWR)
    fcntl.flock(lock, fcntl.LOCK_EX)
    ready()
    if vfork() == 0:
        os.close(lock)
        fcntl.flock(os.open(name, os.O_RDWR), fcntl.LOCK_EX)
    os.close(lock)


@scenario
def file_system_whose_daemon_reads_from_a_reader():
    reading, writing = os.pipe()
    serve, path, device = serve_file(lambda: os.read(reading, 1))

    def daemon():
        os.close(writing)
        serve()

    child(daemon)
    os.close(device)
    fd = os.open(path, os.O_RDONLY)
    ready()
    os.read(fd, 1)
    os.write(writing, b"x")


@scenario
def file_system_whose_daemon_waits_for_the_lock_of_a_reader():
    name = tempfile.mkstemp()[1]
    lock = os.open(name, os.O_RDWR | os.O_CLOEXEC)
    serve, path, device = serve_file(lambda: fcntl.flock(os.open(name, os.O_RDWR), fcntl.LOCK_EX))

    def daemon():
        os.close(lock)
        serve()

    child(daemon)
    os.close(device)
    fcntl.flock(lock, fcntl.LOCK_EX)
    fd = os.open(path, os.O_RDONLY)
    ready()
    os.read(fd, 1)


if __name__ == "__main__":
    main()
