"""Processes of which somebody may still go on: `near_circles.py SCENARIO`."""

from __future__ import annotations

import ctypes
import fcntl
import mmap
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import tempfile
import threading
import time

import kernel_calls
from process_scenarios import (
    PLENTY,
    child,
    crosswise_pipes,
    forever,
    main,
    ready,
    scenario,
    socket_pair,
)


@scenario
def slow_reader():
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
def third_process_keeps_the_end():
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
def second_thread():
    def read(reading, writing):
        threading.Thread(target=forever, daemon=True).start()
        os.read(reading, 1)

    crosswise_pipes(read)


def _time_limit(wait):
    crosswise_pipes(lambda reading, writing: wait(reading))


@scenario
def poll_with_a_time_limit():
    def wait(reading):
        poll = select.poll()
        poll.register(reading, select.POLLIN)
        poll.poll(3_600_000)

    _time_limit(wait)


@scenario
def select_with_a_time_limit():
    _time_limit(lambda reading: select.select([reading], [], [], 3600))


@scenario
def epoll_with_a_time_limit():
    def wait(reading):
        epoll = select.epoll()
        epoll.register(reading, select.EPOLLIN)
        epoll.poll(3600)

    _time_limit(wait)


@scenario
def socket_with_a_time_limit():
    def receive(end):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("qq", 3600, 0))
        end.recv(1)

    socket_pair(receive, socket.socketpair())


@scenario
def socket_with_a_time_limit_to_send():
    def send(end):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("qq", 3600, 0))
        end.sendall(PLENTY)

    socket_pair(send, socket.socketpair())


@scenario
def python_socket_timeout():
    def receive(end):
        end.settimeout(3600)
        end.recv(1)

    socket_pair(receive, socket.socketpair())


def _handler(number):
    def read(reading, writing):
        signal.signal(number, lambda *_: os.write(writing, b"x"))
        os.read(reading, 1)

    crosswise_pipes(read)


@scenario
def handler_of_sigalrm():
    _handler(signal.SIGALRM)


@scenario
def handler_of_sigusr1():
    _handler(signal.SIGUSR1)


@scenario
def handler_of_sigchld():
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
def timer_in_the_epoll():
    def wait(reading):
        epoll = select.epoll()
        epoll.register(reading, select.EPOLLIN)
        libc = ctypes.CDLL(None)
        timer = libc.timerfd_create(time.CLOCK_MONOTONIC, 0)
        libc.timerfd_settime(timer, 0, (ctypes.c_long * 4)(0, 0, 3600, 0), None)
        epoll.register(timer, select.EPOLLIN)
        epoll.poll()

    _time_limit(wait)


@scenario
def listener_in_the_epoll():
    def wait(reading):
        epoll = select.epoll()
        epoll.register(reading, select.EPOLLIN)
        server = socket.create_server(("127.0.0.1", 0))
        epoll.register(server, select.EPOLLIN)
        epoll.poll()

    _time_limit(wait)


@scenario
def signalfd_in_the_poll():
    def wait(reading):
        libc = ctypes.CDLL(None)
        mask = (ctypes.c_uint64 * 16)(1 << signal.SIGUSR1 - 1)
        poll = select.poll()
        poll.register(reading, select.POLLIN)
        poll.register(libc.signalfd(-1, mask, 0), select.POLLIN)
        poll.poll()

    _time_limit(wait)


@scenario
def inotify_in_the_poll():
    def wait(reading):
        poll = select.poll()
        poll.register(reading, select.POLLIN)
        poll.register(ctypes.CDLL(None).inotify_init(), select.POLLIN)
        poll.poll()

    _time_limit(wait)


@scenario
def child_that_sleeps():
    child(forever)
    ready()
    os.wait()


@scenario
def child_that_works():
    def work():
        while True:
            pass

    child(work)
    ready()
    os.wait()


@scenario
def stopped_child():
    pid = child(forever)
    os.kill(pid, signal.SIGSTOP)
    ready()
    os.waitpid(pid, 0)


@scenario
def stopped_peer():
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


def _sleeping_holder(lock):
    name = tempfile.mkstemp()[1]
    reading, writing = os.pipe()

    def holder():
        lock(os.open(name, os.O_RDWR))
        os.write(writing, b"x")
        forever()

    child(holder)
    os.read(reading, 1)
    ready()
    lock(os.open(name, os.O_RDWR))


@scenario
def holder_of_a_flock_that_sleeps():
    _sleeping_holder(lambda fd: fcntl.flock(fd, fcntl.LOCK_EX))


@scenario
def holder_of_a_lockf_that_sleeps():
    _sleeping_holder(lambda fd: fcntl.lockf(fd, fcntl.LOCK_EX))


@scenario
def server_that_accepts_connections():
    server = socket.create_server(("127.0.0.1", 0))
    ready()
    server.accept()


@scenario
def two_servers_of_each_other():
    first = socket.create_server(("127.0.0.1", 0))
    second = socket.create_server(("127.0.0.1", 0))
    child(lambda: first.accept())
    ready()
    second.accept()


@scenario
def datagrams():
    end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    end.bind(os.path.join(tempfile.mkdtemp(), "socket"))
    child(lambda: end.recv(1))
    ready()
    end.recv(1)


@scenario
def udp():
    ends = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2)]
    for end in ends:
        end.bind(("127.0.0.1", 0))
    child(lambda: ends[0].recv(1))
    ready()
    ends[1].recv(1)


@scenario
def threads_that_wait_for_work():
    event = threading.Event()
    for _ in range(3):
        threading.Thread(target=event.wait, daemon=True).start()
    ready()
    signal.pause()


@scenario
def lock_of_a_thread_that_sleeps():
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
def lock_with_a_time_limit():
    crosswise_pipes(lambda reading, writing: _lock_and_read(reading))


def _lock_and_read(reading):
    lock = threading.Lock()
    lock.acquire()
    threading.Thread(target=lock.acquire, kwargs={"timeout": 3600}, daemon=True).start()
    os.read(reading, 1)


@scenario
def terminal():
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
def slow_child_of_a_lock_holder():
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
def answer_on_the_way():
    """Ping-pong: both mostly read, and always go on."""

    def play(end):
        while True:
            end.send(b"x")
            time.sleep(0.01)
            end.recv(1)

    socket_pair(play, socket.socketpair())


@scenario
def poll_of_nothing():
    ready()
    select.poll().poll()


@scenario
def system_v_queue():
    libc = ctypes.CDLL(None)
    queue = kernel_calls.system_v_queue()
    child(lambda: libc.msgrcv(queue, ctypes.create_string_buffer(64), 8, 0, 0))
    ready()
    libc.msgrcv(queue, ctypes.create_string_buffer(64), 8, 0, 0)


@scenario
def connection_to_another_machine():
    end = socket.socket()
    ready()
    try:
        end.connect(("198.51.100.1", 9))
    finally:
        forever()


@scenario
def fifo_without_a_writer():
    name = os.path.join(tempfile.mkdtemp(), "fifo")
    os.mkfifo(name)
    ready()
    os.open(name, os.O_RDONLY)


@scenario
def shared_memory():
    """Both wait for a word that both have mapped; any process with the memory may change it."""
    libc = ctypes.CDLL(None)
    memory = mmap.mmap(-1, 4096)
    address = ctypes.addressof(ctypes.c_int.from_buffer(memory))

    def wait():
        libc.syscall(202, ctypes.c_void_p(address), 0, 0, None, None, 0)

    child(wait)
    ready()
    wait()


if __name__ == "__main__":
    main()
