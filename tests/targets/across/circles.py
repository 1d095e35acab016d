"""Processes that wait for each other for ever: `circles.py SCENARIO`."""

from __future__ import annotations

import fcntl
import multiprocessing
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import threading

from process_scenarios import (
    PLENTY,
    child,
    crosswise_pipes,
    main,
    ready,
    scenario,
    socket_pair,
    unix_server,
    wait_for,
)

F_OFD_SETLKW = 38


# ---- children and pipes ----


def _wait_with_full_pipe(wait):
    reading, writing = os.pipe()

    def fill():
        os.close(reading)
        os.write(writing, PLENTY)

    pid = child(fill)
    os.close(writing)
    ready()
    wait(pid)
    os.read(reading, 1)


@scenario
def wait_for_a_child_that_fills_a_pipe():
    _wait_with_full_pipe(lambda pid: os.waitpid(pid, 0))


@scenario
def waitid_for_a_child_that_fills_a_pipe():
    _wait_with_full_pipe(lambda pid: os.waitid(os.P_PID, pid, os.WEXITED))


@scenario
def wait_for_any_child():
    _wait_with_full_pipe(lambda pid: os.wait())


@scenario
def poll_a_pidfd():
    _wait_with_full_pipe(lambda pid: wait_for(os.pidfd_open(pid)))


@scenario
def popen_wait_before_read():
    program = f"import os; os.write(1, bytes({len(PLENTY)}))"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    ready()
    process.wait()


@scenario
def read_stdout_while_stderr_is_full():
    program = f"import os; os.write(2, bytes({len(PLENTY)}))"
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    ready()
    process.stdout.read()


@scenario
def join_before_the_queue_is_drained():
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=queue.put, args=(PLENTY,))
    process.start()
    ready()
    process.join()


@scenario
def own_end_of_the_pipe_is_open():
    reading, _writing = os.pipe()
    ready()
    os.read(reading, 1)


@scenario
def child_inherited_the_end():
    data_reading, data_writing = os.pipe()
    order_reading, order_writing = os.pipe()

    def wait_for_orders():
        os.close(order_writing)
        os.read(order_reading, 1)

    child(wait_for_orders)
    os.close(data_writing)
    ready()
    os.read(data_reading, 1)
    os.write(order_writing, b"x")


@scenario
def both_read():
    crosswise_pipes(lambda reading, writing: os.read(reading, 1))


@scenario
def both_write():
    crosswise_pipes(lambda reading, writing: os.write(writing, PLENTY))


@scenario
def both_poll():
    crosswise_pipes(lambda reading, writing: wait_for(reading))


@scenario
def both_select():
    crosswise_pipes(lambda reading, writing: select.select([reading], [], []))


@scenario
def both_epoll():
    def epoll(reading, writing):
        epoll = select.epoll()
        epoll.register(reading, select.EPOLLIN)
        epoll.poll()

    crosswise_pipes(epoll)


@scenario
def three_in_a_ring():
    pipes = [os.pipe() for _ in range(3)]

    def member(number):
        reading, writing = pipes[number][0], pipes[(number + 1) % 3][1]
        for fd in {fd for pipe in pipes for fd in pipe} - {reading, writing}:
            os.close(fd)
        os.read(reading, 1)
        os.write(writing, b"x")

    child(lambda: member(1))
    child(lambda: member(2))
    ready()
    member(0)


def _fifos(act):
    directory = tempfile.mkdtemp()
    names = [os.path.join(directory, name) for name in ("a", "b")]
    for name in names:
        os.mkfifo(name)

    def other():
        act(os.open(names[0], os.O_RDONLY), os.open(names[1], os.O_WRONLY))

    child(other)
    writing, reading = os.open(names[0], os.O_WRONLY), os.open(names[1], os.O_RDONLY)
    ready()
    act(reading, writing)


@scenario
def both_read_fifos():
    _fifos(lambda reading, writing: os.read(reading, 1))


@scenario
def both_write_fifos():
    _fifos(lambda reading, writing: os.write(writing, PLENTY))


@scenario
def job_server_without_a_token():
    """As make: a parent waits for its job, whose own make wants a token that the parent has."""
    reading, writing = os.pipe()
    os.write(writing, b"+")
    os.read(reading, 1)
    child(lambda: (os.read(reading, 1), os.write(writing, b"+")))
    ready()
    os.wait()


# ---- sockets ----


def _tcp_pair():
    server = socket.create_server(("127.0.0.1", 0))
    ours = socket.create_connection(server.getsockname())
    theirs, _ = server.accept()
    server.close()
    return ours, theirs


def _named_unix_pair():
    server, ours = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    server.bind(os.path.join(tempfile.mkdtemp(), "socket"))
    server.listen()
    ours.connect(server.getsockname())
    theirs, _ = server.accept()
    server.close()
    return ours, theirs


@scenario
def both_receive_at_a_socket_pair():
    socket_pair(lambda end: end.recv(1), socket.socketpair())


@scenario
def both_send_to_a_socket_pair():
    socket_pair(lambda end: end.sendall(PLENTY), socket.socketpair())


@scenario
def both_receive_over_tcp():
    socket_pair(lambda end: end.recv(1), _tcp_pair())


@scenario
def both_send_over_tcp():
    socket_pair(lambda end: end.sendall(PLENTY * 8), _tcp_pair())


@scenario
def two_daemons_over_a_named_socket():
    socket_pair(lambda end: end.recv(1), _named_unix_pair())


def _not_accepted(server, connect):
    def client():
        end = connect()
        server.close()
        end.recv(1)

    child(client)
    ready()
    os.wait()


@scenario
def tcp_is_not_accepted():
    server = socket.create_server(("127.0.0.1", 0))
    _not_accepted(server, lambda: socket.create_connection(server.getsockname()))


def _connected(server):
    end = socket.socket(socket.AF_UNIX)
    end.connect(server.getsockname())
    return end


@scenario
def unix_is_not_accepted():
    server = unix_server(5)
    _not_accepted(server, lambda: _connected(server))


@scenario
def queue_of_the_server_is_full():
    server = unix_server(0)
    kept = _connected(server)
    _not_accepted(server, lambda: (_connected(server), kept)[0])


@scenario
def eventfds_crosswise():
    first, second = os.eventfd(0), os.eventfd(0)
    child(lambda: (os.eventfd_read(first), os.eventfd_write(second, 1)))
    ready()
    os.eventfd_read(second)
    os.eventfd_write(first, 1)


# ---- locks of files ----


def _locked_crosswise(lock):
    names = [tempfile.mkstemp()[1] for _ in range(2)]
    reading, writing = os.pipe()

    def other():
        first, second = (os.open(name, os.O_RDWR) for name in names)
        lock(second)
        os.write(writing, b"x")
        os.read(back_reading, 1)
        lock(first)

    back_reading, back_writing = os.pipe()
    child(other)
    first, second = (os.open(name, os.O_RDWR) for name in names)
    lock(first)
    os.read(reading, 1)
    os.write(back_writing, b"x")
    for fd in (reading, writing, back_reading, back_writing):
        os.close(fd)
    ready()
    lock(second)


@scenario
def flock_ab_ba():
    _locked_crosswise(lambda fd: fcntl.flock(fd, fcntl.LOCK_EX))


@scenario
def lock_of_an_open_file_ab_ba():
    wanted = struct.pack("=hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
    _locked_crosswise(lambda fd: fcntl.fcntl(fd, F_OFD_SETLKW, wanted))


def _lock_and_pipe(lock):
    """A process has the lock and reads from another one, which wants the lock first."""
    name = tempfile.mkstemp()[1]
    reading, writing = os.pipe()
    go_reading, go_writing = os.pipe()

    def other():
        os.close(reading)
        fd = os.open(name, os.O_RDWR)
        os.read(go_reading, 1)
        lock(fd)
        os.write(writing, b"x")

    child(other)
    os.close(writing)
    fd = os.open(name, os.O_RDWR)
    lock(fd)
    os.write(go_writing, b"x")
    ready()
    os.read(reading, 1)


@scenario
def flock_and_pipe():
    _lock_and_pipe(lambda fd: fcntl.flock(fd, fcntl.LOCK_EX))


@scenario
def lockf_and_pipe():
    _lock_and_pipe(lambda fd: fcntl.lockf(fd, fcntl.LOCK_EX))


@scenario
def workers_at_a_flock_of_their_parent():
    name = tempfile.mkstemp()[1]
    fd = os.open(name, os.O_RDWR)
    fcntl.flock(fd, fcntl.LOCK_EX)

    def worker():
        os.close(fd)
        fcntl.flock(os.open(name, os.O_RDWR), fcntl.LOCK_EX)

    for _ in range(4):
        child(worker)
    ready()
    os.wait()


# ---- locks of threads, and chains through them ----


@scenario
def threads_behind_a_lock_and_a_full_pipe():
    program = f"import os; os.write(1, bytes({len(PLENTY)}))"
    process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    lock, has_it = threading.Lock(), threading.Event()

    def holder():
        with lock:
            has_it.set()
            process.wait()

    def reader():
        with lock:
            process.stdout.read()

    threads = [threading.Thread(target=holder)]
    threads[0].start()
    has_it.wait()
    threads += [threading.Thread(target=reader) for _ in range(5)]
    for thread in threads[1:]:
        thread.start()
    ready()
    for thread in threads:
        thread.join()


@scenario
def holder_of_a_lock_reads_from_the_child_of_a_waiter():
    lock, has_it = threading.Lock(), threading.Event()
    reading, writing = os.pipe()
    order_reading, order_writing = os.pipe()
    child(lambda: (os.close(order_writing), os.read(order_reading, 1), os.write(writing, b"x")))
    os.close(writing)

    def holder():
        with lock:
            has_it.set()
            os.read(reading, 1)

    threading.Thread(target=holder).start()
    has_it.wait()
    ready()
    with lock:
        os.write(order_writing, b"x")


@scenario
def all_threads_wait_for_work_that_a_stuck_process_has():
    reading, writing = os.pipe()
    back_reading, back_writing = os.pipe()

    def other():
        os.close(reading)
        os.close(back_writing)
        os.read(back_reading, 1)
        os.write(writing, b"x")

    child(other)
    os.close(writing)
    event = threading.Event()
    for _ in range(3):
        threading.Thread(target=event.wait).start()
    ready()
    os.read(reading, 1)
    os.write(back_writing, b"x")


if __name__ == "__main__":
    main()
