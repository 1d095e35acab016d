"""The parts that processes which wait for each other have in common.

A program prints the pid to ask about, then waits. All its processes are of one process group,
which the test ends.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import tempfile
import time

SCENARIOS = {}
PLENTY = bytes(4 << 20)
HOUR_S = 3600


def scenario(function):
    """Let a function be called by its name."""
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
    """Sleep, but not for good: each sleep has an end."""
    while True:
        time.sleep(HOUR_S)


def wait_for(fd):
    """Poll a descriptor without a time limit."""
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.poll()


def crosswise_pipes(act):
    """Two processes with two pipes: each calls act(reading, writing)."""
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


def socket_pair(act, pair):
    """Two processes with an end each: both call act(end)."""
    ours, theirs = pair

    def other():
        ours.close()
        act(theirs)

    child(other)
    theirs.close()
    ready()
    act(ours)


def unix_server(queue):
    """Return a listening Unix socket."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(os.path.join(tempfile.mkdtemp(), "socket"))
    server.listen(queue)
    return server


def main():
    """Run the scenario of the command line as the leader of a process group."""
    if os.getpgrp() != os.getpid():
        os.setsid()
    SCENARIOS[sys.argv[1]]()
