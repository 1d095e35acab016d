"""`locktop why` follows waits across processes, and never calls a near miss a deadlock."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from support import requirements, rights, tool
from support.across import running
from support.eventually import until
from support.pythons import has_mutexes
from support.rights import NOBODY
from support.targets import StartTarget, source_of

from locktop.collector.extensions.why import reading
from locktop.collector.extensions.why.host import Host
from locktop.collector.extensions.why.model import HostThread
from locktop.collector.linux import open_files, procfs, unix_sockets

#: `locktop why` is asked so often about processes that may go on.
_QUERIES = 2
_SCENARIO = re.compile(r"^@scenario\ndef (\w+)", re.MULTILINE)
#: By scenario: parts of the sentence, in order. {} is the first process.
_SENTENCES = {
    "wait_for_a_child_that_fills_a_pipe": ("waits for the end of", "writes to the full pipe"),
    "popen_wait_before_read": ("waits for the end of", "writes to its full stdout", "only reader"),
    "own_end_of_the_pipe_is_open": ("reads from pipe", "nobody but itself could end that"),
    "both_receive_over_tcp": ("receives from tcp 127.0.0.1:", "the other end is"),
    "tcp_is_not_accepted": ("waits for the end of", "has not accepted the connection yet"),
    "queue_of_the_server_is_full": ("connects to unix socket", "whose queue is full"),
    "flock_ab_ba": ("waits for the lock of", "has it and waits for the lock of"),
    "workers_at_a_flock_of_their_parent": ("waits for the end of", "waits for the lock of"),
    "threads_behind_a_lock_and_a_full_pipe": (
        # Each waiter for a PyMutex sleeps at a semaphore of its own.
        "waits for Lock in" if has_mutexes(sys.executable) else "5 threads wait for Lock in reader",
        "probably has it and waits for the end of",
        "writes to its full stdout",
    ),
    "poll_a_pidfd": ("waits for the end of", "writes to the full pipe"),
    "both_epoll": ("waits for pipe", "the only writer is"),
    "both_receive_from_queues": ("receives from queue", "could end that"),
    "sender_to_a_full_queue_whose_receiver_waits_for_its_end": ("waits for", "sends to the full"),
    "child_of_vfork_reads_from_its_parent": ("waits for the start of", "reads from pipe"),
    "child_of_vfork_waits_for_the_lock_of_its_parent": ("the start of", "waits for the lock of"),
    "splice_from_the_reader_of_a_splice": ("copies between pipe", "the other end is"),
    "tracer_reads_from_the_process_that_it_has_stopped": ("receives", "is stopped by its tracer"),
    "tracer_waits_for_the_lock_of_the_process_that_it_has_stopped": (
        "waits for the lock of",
        "has it and is stopped by its tracer",
    ),
}
#: By near miss: the end of the sentence.
_ENDS = {
    "child_that_sleeps": "it goes on by itself.",
    "child_that_works": "it can go on.",
    "stopped_child": "a signal may end that.",
    "third_process_keeps_the_end": "it goes on by itself.",
    "terminal": "somebody at the terminal may end that.",
    "datagrams": "any process may end that.",
    "server_that_accepts_connections": "a new connection may end that.",
    "fifo_without_a_writer": "a process that opens its other end may end that.",
    "holder_of_a_flock_that_sleeps": "it goes on by itself.",
    "queue_with_a_time_limit": "it goes on by itself.",
    "system_v_queue_whose_sender_is_known": "last sent to it; any process may end that.",
    "full_system_v_queue_whose_receiver_is_known": (
        "last received from it; any process may end that."
    ),
    "system_v_queue_that_nobody_else_used": "any process may end that.",
    "system_v_semaphore_of_both": "last changed it; any process may end that.",
    "system_v_semaphore_that_a_child_took": "last changed it; any process may end that.",
    "system_v_semaphore_that_nobody_else_changed": "any process may end that.",
    "child_of_vfork_that_sleeps": "it goes on by itself.",
    "spawned_child_that_opens_a_fifo": "a process that opens its other end may end that.",
    "tracer_that_sleeps": "it goes on by itself.",
    "fifo_for_commands": "a process that opens its other end may end that.",
}
#: By scenario of which a deadlock is only possible: a part of the doubt.
_UNSURE = {
    "handler_of_sigalrm": "SIGALRM",
    "handler_of_sigusr1": "SIGUSR1",
    "both_read_fifos": "any process may open",
    "queue_that_others_may_open": "any process may open",
    "writing_end_in_a_message": "may still receive a descriptor",
    "timer_with_a_signal": "has a timer",
}
#: Scenarios with a file system in user space run alone: an older kernel does not tell which of
#: several daemons serves a file.
_FILE_SYSTEM = "file_system"
_CIRCLES, _NEAR_CIRCLES = ("circles", "rare_circles"), ("near_circles", "rare_near_circles")


def scenarios(program: str) -> list[str]:
    """Return the names of a target's scenarios."""
    return _SCENARIO.findall(source_of(program).read_text())


def together(program: str) -> list[str]:
    """Return the names of the scenarios that run at the same time."""
    return [name for name in scenarios(program) if not name.startswith(_FILE_SYSTEM)]


def file_systems(programs: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the scenarios with a file system in user space, with their programs."""
    return [
        (program, name)
        for program in programs
        for name in scenarios(program)
        if name.startswith(_FILE_SYSTEM)
    ]


def chains(pids: list[int]) -> dict[int, dict[str, Any]]:
    """Return the chains of processes by pid."""
    done = tool.run("why", *pids, "--format", "json")
    assert done.returncode in (0, 1, 3), done.stderr
    return {chain["pid"]: chain for chain in json.loads(done.stdout)["chains"]}


@pytest.mark.parametrize("program", _CIRCLES)
def test_processes_that_wait_for_each_other_are_deadlocked(program: str) -> None:
    names = together(program)
    with ExitStack() as stack:
        pids = {name: stack.enter_context(running(program, name)) for name in names}
        answers: dict[int, dict[str, Any]] = {}

        def is_called(name: str) -> bool:
            wanted = "possible_deadlock" if name in _UNSURE else "deadlock"
            return answers.get(pids[name], {}).get("verdict") == wanted

        def all_are_called() -> bool:
            left = [pids[name] for name in names if not is_called(name)]
            answers.update(chains(left))
            return all(map(is_called, names))

        with suppress(AssertionError):
            until(all_are_called, "a deadlock in each scenario")
        assert [name for name in names if not is_called(name)] == []
        for name in names:
            sentence = answers[pids[name]]["sentence"]
            assert has_in_order(sentence, _SENTENCES.get(name, ())), sentence
            assert sentence.endswith("nobody can go on.")


@pytest.mark.parametrize("program", _NEAR_CIRCLES)
def test_near_misses_are_no_deadlock(program: str) -> None:
    names = together(program)
    with ExitStack() as stack:
        pids = {name: stack.enter_context(running(program, name)) for name in names}
        ends = {name: "" for name in names if name in _ENDS}
        for number in range(_QUERIES):
            answers = chains(list(pids.values()))
            for name, pid in pids.items():
                allowed = ("waits", "no_wait", *(("possible_deadlock",) if name in _UNSURE else ()))
                assert answers[pid]["verdict"] in allowed, answers[pid]["sentence"]
                ends.update({name: answers[pid]["sentence"]} if name in ends else {})
                if name in _UNSURE and number == _QUERIES - 1:
                    assert any(_UNSURE[name] in doubt for doubt in answers[pid]["doubts"])
        for name, sentence in ends.items():
            assert sentence.endswith(_ENDS[name]), sentence
            assert ("nobody_else" not in name) or " last " not in sentence, sentence


@pytest.mark.parametrize(("program", "name"), file_systems(_CIRCLES))
def test_a_daemon_of_a_file_system_waits_for_its_reader(program: str, name: str) -> None:
    requirements.right_to_mount()
    with running(program, name) as pid:
        until(lambda: tool.run("why", pid).returncode == 1, "status 1")
        assert "the only daemon of the file system" in chains([pid])[pid]["sentence"]


@pytest.mark.parametrize(("program", "name"), file_systems(_NEAR_CIRCLES))
def test_a_slow_daemon_of_a_file_system_is_no_deadlock(program: str, name: str) -> None:
    requirements.right_to_mount()
    with running(program, name) as pid:
        assert tool.run("why", pid).returncode == 0


def test_of_several_daemons_of_file_systems_the_right_one_is_named() -> None:
    requirements.right_to_mount()
    circles, near = "rare_circles", "rare_near_circles"
    slow = "file_system_with_a_slow_daemon"
    with (
        running(circles, "file_system_whose_daemon_reads_from_a_reader") as first,
        running(circles, "file_system_whose_daemon_waits_for_the_lock_of_a_reader") as second,
        running(near, slow) as healthy,
    ):
        if not _says_file_systems():
            assert [chains([pid])[pid]["verdict"] for pid in (first, healthy)] == ["waits"] * 2
            return
        until(lambda: tool.run("why", first, second).returncode == 1, "status 1")
        verdicts = {
            pid: chain["verdict"] for pid, chain in chains([first, second, healthy]).items()
        }
        assert verdicts == {first: "deadlock", second: "deadlock", healthy: "waits"}
        assert chains([healthy])[healthy]["steps"][-1]["pid"] != healthy


def _says_file_systems() -> bool:
    """Return whether the kernel tells which file system a daemon serves."""
    devices = open_files.read_all(procfs.pids()).by_target["/dev/fuse"]
    return any(
        name == "fuse_connection"
        for device in devices
        for name, _ in open_files.information(device.pid, device.fd)
    )


def has_in_order(text: str, parts: tuple[str, ...]) -> bool:
    """Return whether a text has these parts one after the other."""
    start = 0
    for part in parts:
        position = text.find(part, start)
        if position < 0:
            return False
        start = position + len(part)
    return True


def test_the_chain_has_the_lines_of_the_code_and_the_times() -> None:
    with running("circles", "popen_wait_before_read") as pid:
        until(lambda: chains([pid])[pid]["verdict"] == "deadlock", "the deadlock")
        first, second = chains([pid])[pid]["steps"]
        line = next(
            number
            for number, text in enumerate(source_of("circles").read_text().splitlines(), 1)
            if text == "    process.wait()"
        )
        assert first["at"] == f"popen_wait_before_read circles.py:{line}"
        assert second["at"] == "<module> <string>:1"
        assert first["pid"] == pid
        assert second["pid"] != pid
        assert first["since_s"] > 0


@pytest.fixture(params=["start_target", "start_unprepared"])
def start(request: pytest.FixtureRequest) -> StartTarget:
    """Starts a target, with the library and without."""
    starts: StartTarget = request.getfixturevalue(request.param)
    return starts


def test_a_circle_of_mutexes_in_shared_memory(start: StartTarget) -> None:
    target = start("shared_mutex_held_elsewhere", "crossed")
    other = target.truth()["process"]
    until(lambda: tool.run("why", target.pid).returncode == 1, "status 1")
    steps = chains([target.pid])[target.pid]["steps"]
    assert [step["pid"] for step in steps] == [target.pid, other]
    assert [step["role_of_providers"] for step in steps] == ["holder", "holder"]


def test_the_owner_of_a_mutex_is_gone(start: StartTarget) -> None:
    target = start("shared_mutex_owner_killed")
    target.expect("ready")
    until(lambda: tool.run("why", target.pid).returncode == 1, "status 1")
    sentence = chains([target.pid])[target.pid]["sentence"]
    assert re.search(r"thread \d+ had it, and ended without a release: nobody can", sentence)


def test_the_holder_lives_and_only_waits_for_its_parent(start: StartTarget) -> None:
    """The parent's line makes the holder go on: the chain ends there, and is no deadlock."""
    target = start("shared_mutex_held_elsewhere", "main")
    other = target.truth()["process"]
    until(lambda: len(chains([target.pid])[target.pid]["steps"]) > 1, "the holder")
    answer = chains([target.pid])[target.pid]
    assert answer["steps"][1]["pid"] == other


@pytest.mark.parametrize(
    "name",
    [
        "both_receive_at_a_socket_pair",
        "unix_is_not_accepted",
        "threads_behind_a_lock_and_a_full_pipe",
    ],
)
def test_namespaces_of_a_container_are_no_border(name: str) -> None:
    """Processes in pid and network namespaces of their own, asked about from outside."""
    if name != "threads_behind_a_lock_and_a_full_pipe" and os.geteuid() != 0:
        pytest.skip("only root sees sockets of another network namespace (docs/why.md)")
    kinds = ("--user", "--map-root-user", "--net", "--pid", "--mount-proc")
    enter = ("unshare", *kinds, "--fork", "--kill-child")
    if subprocess.run([*enter, "true"], capture_output=True).returncode:
        pytest.skip("no right to make namespaces")
    with running("circles", name, *enter) as own_pid:
        pid = next(
            pid
            for pid in procfs.pids()
            if name.encode() in procfs.read(f"/proc/{pid}/cmdline").split(b"\0")
            and procfs.own_tid(pid, pid) == own_pid
            and procfs.own_tid(pid, pid) != pid
        )
        until(lambda: tool.run("why", pid).returncode == 1, "status 1")


def test_an_ordinary_user_hears_what_was_hidden(tmp_path: Path) -> None:
    """The pipes of a deadlock may be in a process of another user: it is possible at most."""
    if os.geteuid():
        pytest.skip("only root can start a process of another user")
    rights.need_open_checkout()
    setpriv = requirements.command("setpriv", "util-linux")
    to_nobody = (str(setpriv), f"--reuid={NOBODY}", "--clear-groups")
    with running("circles", "both_read", *to_nobody) as pid:
        until(lambda: tool.run("why", pid).returncode == 1, "status 1 for root")
        command = [*to_nobody, tool.COMMAND, "why", str(pid)]
        answers: list[str] = []

        def is_possible() -> bool:
            done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
            assert done.returncode in (0, 3), done.stderr
            answers.append(done.stdout)
            return done.returncode == 3

        until(is_possible, "status 3 for another user")
    assert answers[-1].startswith("possible deadlock: ")
    lines = " ".join(answers[-1].split())
    assert re.search(r"not certain: the open files of \d+ processes are hidden", lines)
    assert re.search(r"The kernel hides \d+ processes from this user; root sees more", lines)


def test_the_exit_status_is_that_of_check() -> None:
    with running("circles", "both_read") as stuck, running("near_circles", "udp") as healthy:
        until(lambda: tool.run("why", stuck).returncode == 1, "status 1")
        assert tool.run("why", healthy).returncode == 0
        # A descriptor that another program has in a message makes it possible for a moment.
        until(lambda: tool.run("why", healthy, stuck).returncode == 1, "status 1 of one of two")


def test_stuck_shows_the_deadlocks_of_the_whole_machine() -> None:
    with running("circles", "both_read") as stuck, running("near_circles", "udp") as healthy:
        until(lambda: tool.run("why", stuck).returncode == 1, "status 1")
        done = tool.run("why", "--stuck", "--format", "json")
        verdicts = {chain["pid"]: chain["verdict"] for chain in json.loads(done.stdout)["chains"]}
        assert done.returncode == 1
        assert verdicts[stuck] == "deadlock"
        assert verdicts.get(healthy, "waits") == "waits"


def test_stuck_finds_mutexes_of_a_process_that_works_on(start: StartTarget) -> None:
    target = start("accounts_deadlock")
    target.expect("ready")
    until(lambda: tool.run("why", target.pid).returncode == 1, "status 1")
    done = tool.run("why", "--stuck", "--format", "json")
    assert target.pid in [chain["pid"] for chain in json.loads(done.stdout)["chains"]]


def test_stuck_says_which_processes_it_has_no_time_to_search(
    start: StartTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = start("accounts_deadlock")
    target.expect("ready")
    until(lambda: tool.run("why", target.pid).returncode == 1, "status 1")
    monkeypatch.setattr(reading, "FULL_SCANS_CPU_S", 0.0)
    answer = reading.why_stuck()
    (note,) = answer.notes
    assert str(target.pid) in note
    verdicts = {chain.pid: chain.verdict for chain in answer.chains}
    assert verdicts[target.pid] == "deadlock"  # the owners of mutexes need no search


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give one or more processes, or --stuck for all of them"),
        (("--stuck", "1"), "give one or more processes, or --stuck for all of them"),
        (("4194304",), "no such process: 4194304"),
    ],
)
def test_a_wrong_use_is_one_line(arguments: tuple[str, ...], says: str) -> None:
    done = tool.run("why", *arguments)
    assert done.returncode == 2
    assert done.stderr.splitlines() == [f"locktop: {says}"]


def test_the_graph_is_one_of_graphviz() -> None:
    requirements.command("dot", "graphviz")
    with running("circles", "both_read") as pid:
        until(lambda: tool.run("why", pid).returncode == 1, "status 1")
        graph = tool.run("why", pid, "--format", "dot").stdout
    done = subprocess.run(["dot", "-Tplain"], input=graph, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(re.findall(r"^edge ", done.stdout, re.MULTILINE)) == 2


def test_the_graph_of_the_machine_has_each_thread_that_waits() -> None:
    with running("circles", "threads_behind_a_lock_and_a_full_pipe") as pid:
        until(lambda: tool.run("why", pid).returncode == 1, "status 1")
        graphs = [tool.run("why", what, "--format", "dot").stdout for what in (pid, "--stuck")]
    for graph in graphs:
        assert f"subgraph cluster_{pid} " in graph
        boxes = re.findall(r'label="[^"]*waits for Lock in reader', graph)
        if has_mutexes(sys.executable):  # each wait has a lock of its own
            assert len(boxes) == 5
        else:
            assert [box for box in boxes if "and 4 more\\n" in box] == boxes != []
        # The first thread waits for the end of another one, which is no step of the chain.
        assert re.search(rf't{pid} \[label="python[^"]*\\nwaits for ', graph), graph


def test_peers_of_unix_sockets_are_those_that_the_test_made() -> None:
    import socket

    first, second = socket.socketpair()
    with first, second:
        inodes = [os.fstat(end.fileno()).st_ino for end in (first, second)]
        sockets = unix_sockets.read_all()
        assert [sockets[inode].peer for inode in inodes] == inodes[::-1]


def test_threads_that_have_run_since_are_not_stuck(start_unprepared: StartTarget) -> None:
    """--stuck scans no process whose threads, read before, do not wait on."""
    target = start_unprepared("waits_amid_work")
    target.expect("ready")
    asleep: list[HostThread] = []

    def all_sleep() -> bool:
        asleep[:] = [each for each in Host().threads(target.pid) if each.tid != target.pid]
        return all(each.state == "S" for each in asleep) and reading.still_wait(asleep)

    until(all_sleep, "threads that wait")
    assert not reading.still_wait(asleep[:1])  # one thread alone is in no deadlock at locks
    target.go_on()
    target.expect("done")
    assert not reading.still_wait(asleep)
