"""Processes that wait for each other: `chains.py SCENARIO` prints the pid to ask about, then waits.

A name that begins with `near_` is a near miss: somebody may still go on. All processes are of one
process group, which the test ends. docs: tests/targets/README.md.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

SCENARIOS = {}
PLENTY = bytes(4 << 20)
F_OFD_SETLKW = 38


def scenario(function):
    SCENARIOS[function.__name__] = function
    return function


def ready():
    """Print the pid to ask about, once."""
    print(os.getpid(), flush=True)


def child(function):
    """Fork a child that runs a function; return its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            function()
        finally:
            os._exit(0)
    return pid


def forever():
    while True:
        time.sleep(3600)


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
    def wait(pid):
        poll = select.poll()
        poll.register(os.pidfd_open(pid), select.POLLIN)
        poll.poll()

    _wait_with_full_pipe(wait)


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
    import multiprocessing

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


def _crosswise_pipes(act):
    first, second = os.pipe(), os.pipe()

    def other():
        os.close(first[1])
        os.close(second[0])
        act(first[0], second[1])

    child(other)
    os.close(first[0])
    os.close(second[1])
    ready()
    act(second[0], first[1])


@scenario
def both_read():
    _crosswise_pipes(lambda reading, writing: os.read(reading, 1))


@scenario
def both_write():
    _crosswise_pipes(lambda reading, writing: os.write(writing, PLENTY))


@scenario
def both_poll():
    def poll(reading, writing):
        poll = select.poll()
        poll.register(reading, select.POLLIN)
        poll.poll()

    _crosswise_pipes(poll)


@scenario
def both_select():
    _crosswise_pipes(lambda reading, writing: select.select([reading], [], []))


@scenario
def both_epoll():
    def epoll(reading, writing):
        epoll = select.epoll()
        epoll.register(reading, select.EPOLLIN)
        epoll.poll()

    _crosswise_pipes(epoll)


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


def _socket_pair(act, pair):
    ours, theirs = pair

    def other():
        ours.close()
        act(theirs)

    child(other)
    theirs.close()
    ready()
    act(ours)


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
    _socket_pair(lambda end: end.recv(1), socket.socketpair())


@scenario
def both_send_to_a_socket_pair():
    _socket_pair(lambda end: end.sendall(PLENTY), socket.socketpair())


@scenario
def both_receive_over_tcp():
    _socket_pair(lambda end: end.recv(1), _tcp_pair())


@scenario
def both_send_over_tcp():
    _socket_pair(lambda end: end.sendall(PLENTY * 8), _tcp_pair())


@scenario
def two_daemons_over_a_named_socket():
    _socket_pair(lambda end: end.recv(1), _named_unix_pair())


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


def _unix_server(queue):
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.join(tempfile.mkdtemp(), "socket"))
    server.listen(queue)
    return server


def _connected(server):
    end = socket.socket(socket.AF_UNIX)
    end.connect(server.getsockname())
    return end


@scenario
def unix_is_not_accepted():
    server = _unix_server(5)
    _not_accepted(server, lambda: _connected(server))


@scenario
def queue_of_the_server_is_full():
    server = _unix_server(0)
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
    import struct

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


# ---- near misses: somebody may still go on ----


@scenario
def near_slow_reader():
    reading, writing = os.pipe()

    def drain():
        os.close(writing)
        while os.read(reading, 1000):
            time.sleep(0.1)

    child(drain)
    os.close(reading)
    ready()
    os.write(writing, PLENTY)


@scenario
def near_third_process_keeps_the_end():
    reading, writing = os.pipe()
    child(forever)

    def other():
        os.close(writing)
        os.read(reading, 1)

    child(other)
    os.close(writing)
    ready()
    os.read(reading, 1)


@scenario
def near_second_thread():
    def read(reading, writing):
        threading.Thread(target=forever, daemon=True).start()
        os.read(reading, 1)

    _crosswise_pipes(read)


def _near_time_limit(wait):
    _crosswise_pipes(lambda reading, writing: wait(reading))


@scenario
def near_poll_with_a_time_limit():
    def wait(reading):
        poll = select.poll()
        poll.register(reading, select.POLLIN)
        poll.poll(3_600_000)

    _near_time_limit(wait)


@scenario
def near_select_with_a_time_limit():
    _near_time_limit(lambda reading: select.select([reading], [], [], 3600))


@scenario
def near_epoll_with_a_time_limit():
    def wait(reading):
        epoll = select.epoll()
        epoll.register(reading, select.EPOLLIN)
        epoll.poll(3600)

    _near_time_limit(wait)


@scenario
def near_socket_with_a_time_limit():
    import struct

    def receive(end):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("qq", 3600, 0))
        end.recv(1)

    _socket_pair(receive, socket.socketpair())


@scenario
def near_socket_with_a_time_limit_to_send():
    import struct

    def send(end):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("qq", 3600, 0))
        end.sendall(PLENTY)

    _socket_pair(send, socket.socketpair())


@scenario
def near_python_socket_timeout():
    def receive(end):
        end.settimeout(3600)
        end.recv(1)

    _socket_pair(receive, socket.socketpair())


def _near_handler(number):
    def read(reading, writing):
        signal.signal(number, lambda *_: os.write(writing, b"x"))
        os.read(reading, 1)

    _crosswise_pipes(read)


@scenario
def near_handler_of_sigalrm():
    _near_handler(signal.SIGALRM)


@scenario
def near_handler_of_sigusr1():
    _near_handler(signal.SIGUSR1)


@scenario
def near_handler_of_sigchld():
    def read(reading, writing):
        signal.signal(signal.SIGCHLD, lambda *_: os.write(writing, b"x"))
        os.read(reading, 1)

    first, second = os.pipe(), os.pipe()

    def other():
        os.close(first[1])
        os.close(second[0])
        os.read(first[0], 1)

    child(forever)
    child(other)
    ready()
    read(second[0], first[1])


@scenario
def near_timer_in_the_epoll():
    def wait(reading):
        epoll = select.epoll()
        epoll.register(reading, select.EPOLLIN)
        libc = ctypes.CDLL(None)
        timer = libc.timerfd_create(time.CLOCK_MONOTONIC, 0)
        libc.timerfd_settime(timer, 0, (ctypes.c_long * 4)(0, 0, 3600, 0), None)
        epoll.register(timer, select.EPOLLIN)
        epoll.poll()

    _near_time_limit(wait)


@scenario
def near_listener_in_the_epoll():
    def wait(reading):
        epoll = select.epoll()
        epoll.register(reading, select.EPOLLIN)
        server = socket.create_server(("127.0.0.1", 0))
        epoll.register(server, select.EPOLLIN)
        epoll.poll()

    _near_time_limit(wait)


@scenario
def near_signalfd_in_the_poll():
    def wait(reading):
        libc = ctypes.CDLL(None)
        mask = (ctypes.c_uint64 * 16)(1 << signal.SIGUSR1 - 1)
        poll = select.poll()
        poll.register(reading, select.POLLIN)
        poll.register(libc.signalfd(-1, mask, 0), select.POLLIN)
        poll.poll()

    _near_time_limit(wait)


@scenario
def near_inotify_in_the_poll():
    def wait(reading):
        poll = select.poll()
        poll.register(reading, select.POLLIN)
        poll.register(ctypes.CDLL(None).inotify_init(), select.POLLIN)
        poll.poll()

    _near_time_limit(wait)


@scenario
def near_child_that_sleeps():
    child(forever)
    ready()
    os.wait()


@scenario
def near_child_that_works():
    def work():
        while True:
            pass

    child(work)
    ready()
    os.wait()


@scenario
def near_stopped_child():
    pid = child(forever)
    os.kill(pid, signal.SIGSTOP)
    ready()
    os.waitpid(pid, 0)


@scenario
def near_stopped_peer():
    def read(reading, writing):
        os.read(reading, 1)

    first, second = os.pipe(), os.pipe()

    def other():
        os.close(first[1])
        os.close(second[0])
        os.read(first[0], 1)

    pid = child(other)
    os.close(first[0])
    os.close(second[1])
    os.kill(pid, signal.SIGSTOP)
    ready()
    read(second[0], first[1])


@scenario
def near_holder_of_a_flock_that_sleeps():
    name = tempfile.mkstemp()[1]
    reading, writing = os.pipe()

    def holder():
        fcntl.flock(os.open(name, os.O_RDWR), fcntl.LOCK_EX)
        os.write(writing, b"x")
        forever()

    child(holder)
    os.read(reading, 1)
    ready()
    fcntl.flock(os.open(name, os.O_RDWR), fcntl.LOCK_EX)


@scenario
def near_holder_of_a_lockf_that_sleeps():
    name = tempfile.mkstemp()[1]
    reading, writing = os.pipe()

    def holder():
        fcntl.lockf(os.open(name, os.O_RDWR), fcntl.LOCK_EX)
        os.write(writing, b"x")
        forever()

    child(holder)
    os.read(reading, 1)
    ready()
    fcntl.lockf(os.open(name, os.O_RDWR), fcntl.LOCK_EX)


@scenario
def near_server_that_accepts_connections():
    server = socket.create_server(("127.0.0.1", 0))
    ready()
    server.accept()


@scenario
def near_two_servers_of_each_other():
    first = socket.create_server(("127.0.0.1", 0))
    second = socket.create_server(("127.0.0.1", 0))
    child(lambda: first.accept())
    ready()
    second.accept()


@scenario
def near_datagrams():
    end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    end.bind(os.path.join(tempfile.mkdtemp(), "socket"))
    child(lambda: end.recv(1))
    ready()
    end.recv(1)


@scenario
def near_udp():
    ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for end in ends:
        end.bind(("127.0.0.1", 0))
    child(lambda: ends[0].recv(1))
    ready()
    ends[1].recv(1)


@scenario
def near_threads_that_wait_for_work():
    event = threading.Event()
    for _ in range(3):
        threading.Thread(target=event.wait, daemon=True).start()
    ready()
    signal.pause()


@scenario
def near_lock_of_a_thread_that_sleeps():
    lock, has_it = threading.Lock(), threading.Event()

    def holder():
        with lock:
            has_it.set()
            forever()

    threading.Thread(target=holder, daemon=True).start()
    has_it.wait()
    ready()
    lock.acquire()


@scenario
def near_lock_with_a_time_limit():
    _crosswise_pipes(
        lambda reading, writing: (threading.Lock().acquire(), os.read(reading, 1))
        if False
        else _lock_and_read(reading)
    )


def _lock_and_read(reading):
    lock = threading.Lock()
    lock.acquire()
    threading.Thread(target=lock.acquire, kwargs={"timeout": 3600}, daemon=True).start()
    os.read(reading, 1)


@scenario
def near_terminal():
    import pty

    _master, slave = pty.openpty()
    reading, writing = os.pipe()

    def other():
        os.close(reading)
        os.read(slave, 1)
        os.write(writing, b"x")

    child(other)
    os.close(writing)
    ready()
    os.read(reading, 1)


@scenario
def near_slow_child_of_a_lock_holder():
    lock, has_it = threading.Lock(), threading.Event()
    process = subprocess.Popen(["sleep", "3600"])

    def holder():
        with lock:
            has_it.set()
            process.wait()

    threading.Thread(target=holder, daemon=True).start()
    has_it.wait()
    ready()
    lock.acquire()


@scenario
def near_answer_on_the_way():
    """Ping-pong: both mostly read, and always go on."""

    def play(end):
        while True:
            end.send(b"x")
            time.sleep(0.01)
            end.recv(1)

    _socket_pair(play, socket.socketpair())


@scenario
def near_poll_of_nothing():
    ready()
    select.poll().poll()


@scenario
def near_system_v_queue():
    libc = ctypes.CDLL(None)
    queue = libc.msgget(0, 0o600)
    child(lambda: libc.msgrcv(queue, ctypes.create_string_buffer(64), 8, 0, 0))
    ready()
    libc.msgrcv(queue, ctypes.create_string_buffer(64), 8, 0, 0)


@scenario
def near_connection_to_another_machine():
    end = socket.socket()
    ready()
    try:
        end.connect(("198.51.100.1", 9))
    finally:
        forever()


@scenario
def near_fifo_without_a_writer():
    name = os.path.join(tempfile.mkdtemp(), "fifo")
    os.mkfifo(name)
    ready()
    os.open(name, os.O_RDONLY)


@scenario
def near_shared_memory():
    """Both wait for a word that both have mapped; any process with the memory may change it."""
    import mmap

    libc = ctypes.CDLL(None)
    memory = mmap.mmap(-1, 4096)
    address = ctypes.addressof(ctypes.c_int.from_buffer(memory))

    def wait():
        libc.syscall(202, ctypes.c_void_p(address), 0, 0, None, None, 0)

    child(wait)
    ready()
    wait()


if __name__ == "__main__":
    os.setsid() if os.getpgrp() != os.getpid() else None
    SCENARIOS[sys.argv[1]]()
