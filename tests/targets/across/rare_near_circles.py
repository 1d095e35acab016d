"""Healthy processes that look stuck at rare objects: `rare_near_circles.py SCENARIO`."""

from __future__ import annotations

import array
import ctypes
import os
import select
import signal
import socket
import struct
import tempfile
import threading
import time

from kernel_calls import (
    GETPID,
    GETVAL,
    LIBC,
    PTRACE_ATTACH,
    PTRACE_CONT,
    PTRACE_TRACEME,
    change_semaphore,
    fill_system_v_queue,
    queue,
    receive,
    receive_from_system_v,
    send_to_system_v,
    serve_file,
    system_v_queue,
    system_v_semaphore,
    vfork,
)
from process_scenarios import (
    HOUR_S,
    child,
    crosswise_pipes,
    forever,
    main,
    ready,
    scenario,
    socket_pair,
    unix_server,
)

_SIGEV_SIGNAL = 0


@scenario
def queue_that_others_may_open():
    number = queue(has_name=True)
    child(lambda: receive(number))
    ready()
    receive(number)


@scenario
def queue_with_a_time_limit():
    number = queue()
    until = (ctypes.c_long * 2)(int(time.time()) + HOUR_S, 0)

    def wait():
        LIBC.mq_timedreceive(number, ctypes.create_string_buffer(8), 8, None, until)

    child(wait)
    ready()
    wait()


@scenario
def system_v_semaphore_of_both():
    semaphore = system_v_semaphore()

    def add_and_sleep():
        change_semaphore(semaphore, 1)
        forever()

    pid = child(add_and_sleep)
    while LIBC.semctl(semaphore, 0, GETVAL) == 0:
        time.sleep(0.01)
    assert LIBC.semctl(semaphore, 0, GETPID) == pid
    ready()
    change_semaphore(semaphore, -2)


@scenario
def system_v_semaphore_that_a_child_took():
    semaphore = system_v_semaphore()
    change_semaphore(semaphore, 1)
    reading, writing = os.pipe()

    def take_and_sleep():
        change_semaphore(semaphore, -1)
        os.write(writing, b"x")
        forever()

    child(take_and_sleep)
    os.read(reading, 1)
    ready()
    change_semaphore(semaphore, -1)


@scenario
def system_v_semaphore_that_nobody_else_changed():
    semaphore = system_v_semaphore()
    change_semaphore(semaphore, 1)
    child(forever)
    ready()
    change_semaphore(semaphore, -2)


@scenario
def system_v_queue_whose_sender_is_known():
    number = system_v_queue()
    os.waitpid(child(lambda: send_to_system_v(number)), 0)
    receive_from_system_v(number)
    ready()
    receive_from_system_v(number)


@scenario
def full_system_v_queue_whose_receiver_is_known():
    number = system_v_queue()
    send_to_system_v(number)
    os.waitpid(child(lambda: receive_from_system_v(number)), 0)
    fill_system_v_queue(number)
    ready()
    send_to_system_v(number)


@scenario
def system_v_queue_that_nobody_else_used():
    number = system_v_queue()
    send_to_system_v(number)
    receive_from_system_v(number)
    child(forever)
    ready()
    receive_from_system_v(number)


@scenario
def child_of_vfork_that_sleeps():
    ready()
    if vfork() == 0:
        forever()


@scenario
def spawned_child_that_opens_a_fifo():
    """A parent is in posix_spawn until its child has opened its files."""
    name = os.path.join(tempfile.mkdtemp(), "fifo")
    os.mkfifo(name)
    ready()
    os.posix_spawn(
        "/bin/true", ["true"], {}, file_actions=[(os.POSIX_SPAWN_OPEN, 0, name, os.O_RDONLY, 0)]
    )


@scenario
def eventfd_that_a_sleeper_also_has():
    number = os.eventfd(0)
    child(lambda: (forever(), os.eventfd_write(number, 1)))
    ready()
    os.eventfd_read(number)


@scenario
def tracer_that_sleeps():
    ours, theirs = socket.socketpair()

    def tracee():
        LIBC.ptrace(PTRACE_TRACEME, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        theirs.send(b"x")

    def trace():
        ours.close()
        os.waitpid(child(tracee), os.WUNTRACED)
        theirs.close()
        forever()

    child(trace)
    theirs.close()
    ready()
    ours.recv(1)


@scenario
def parent_that_also_waits_for_a_tracee():
    """Its child never ends, but it is told of its tracee, which is no child."""
    reading, writing = os.pipe()
    pid_reading, pid_writing = os.pipe()

    def parent_of_the_tracee():
        os.close(writing)
        pid = child(forever)
        os.write(pid_writing, struct.pack("=i", pid))
        os.read(reading, 1)

    child(parent_of_the_tracee)
    (tracee,) = struct.unpack("=i", os.read(pid_reading, 4))
    LIBC.ptrace(PTRACE_ATTACH, tracee, 0, 0)
    os.waitpid(tracee, os.WUNTRACED)
    LIBC.ptrace(PTRACE_CONT, tracee, 0, 0)
    ready()
    os.wait()


@scenario
def fifo_for_commands():
    """Both ends of a FIFO are open, so that it has no end of file: anybody may write to it."""
    name = os.path.join(tempfile.mkdtemp(), "fifo")
    os.mkfifo(name)
    fd = os.open(name, os.O_RDWR)
    ready()
    os.read(fd, 1)


@scenario
def fifo_for_commands_in_a_poll():
    name = os.path.join(tempfile.mkdtemp(), "fifo")
    os.mkfifo(name)
    poll = select.poll()
    poll.register(os.open(name, os.O_RDWR), select.POLLIN)
    ready()
    poll.poll()


@scenario
def watchdog_thread_that_shuts_down():
    def receive_at_most_an_hour(end):
        def watch():
            time.sleep(HOUR_S)
            end.shutdown(socket.SHUT_RDWR)

        threading.Thread(target=watch, daemon=True).start()
        end.recv(1)

    socket_pair(receive_at_most_an_hour, socket.socketpair())


@scenario
def watchdog_process_that_shuts_down():
    ours, theirs = socket.socketpair()
    stays = os.dup(ours.fileno())

    def watch():
        theirs.close()
        time.sleep(HOUR_S)
        socket.socket(fileno=stays).shutdown(socket.SHUT_RDWR)

    child(watch)
    os.close(stays)
    socket_pair(lambda end: end.recv(1), (ours, theirs))


@scenario
def writing_end_in_a_message():
    """A process that sleeps has not yet received the descriptor of the pipe."""
    here, there = socket.socketpair()

    def receive_later():
        here.close()
        forever()

    child(receive_later)
    there.close()
    reading, writing = os.pipe()
    right = array.array("i", [writing])
    here.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, right)])
    ready()
    os.read(reading, 1)


@scenario
def timer_with_a_signal():
    """A handler of a real-time signal, for a timer that ends the wait."""

    def read(reading, writing):
        signal.signal(signal.SIGRTMIN, lambda *_: os.write(writing, b"x"))
        event = struct.pack("=qii48x", 0, signal.SIGRTMIN, _SIGEV_SIGNAL)
        timer = ctypes.c_void_p()
        LIBC.timer_create(time.CLOCK_MONOTONIC, event, ctypes.byref(timer))
        LIBC.timer_settime(timer, 0, struct.pack("=4q", 0, 0, HOUR_S, 0), None)
        os.read(reading, 1)

    crosswise_pipes(read)


@scenario
def listener_that_another_process_inherited():
    server = unix_server(5)

    def client():
        end = socket.socket(socket.AF_UNIX)
        end.connect(server.getsockname())
        server.close()
        end.recv(1)

    child(forever)
    child(client)
    ready()
    os.wait()


@scenario
def supervisor_of_workers():
    """A supervisor in epoll at signals, a socket for orders and its workers, which wait for it."""
    epoll = select.epoll()
    mask = (ctypes.c_uint64 * 16)(1 << signal.SIGTERM - 1)
    epoll.register(LIBC.signalfd(-1, mask, 0), select.EPOLLIN)
    epoll.register(unix_server(5), select.EPOLLIN)
    for _ in range(3):
        ours, theirs = socket.socketpair()
        child(lambda end=theirs: end.recv(1))
        theirs.close()
        epoll.register(ours, select.EPOLLIN)
    ready()
    epoll.poll()


@scenario
def epoll_in_another_thread():
    """One thread of each reads, another one polls what makes it write."""

    def read(reading, writing):
        epoll = select.epoll()
        server = socket.create_server(("127.0.0.1", 0))
        epoll.register(server, select.EPOLLIN)
        threading.Thread(target=epoll.poll, daemon=True).start()
        os.read(reading, 1)

    crosswise_pipes(read)


@scenario
def epoll_that_another_thread_changes():
    """A thread that sleeps may add a descriptor that is ready."""

    def wait(reading, writing):
        epoll = select.epoll()
        epoll.register(reading, select.EPOLLIN)
        threading.Thread(target=forever, daemon=True).start()
        epoll.poll()

    crosswise_pipes(wait)


@scenario
def file_system_with_a_slow_daemon():
    serve, path, device = serve_file(forever)
    child(serve)
    os.close(device)
    fd = os.open(path, os.O_RDONLY)
    ready()
    os.read(fd, 1)


if __name__ == "__main__":
    main()
