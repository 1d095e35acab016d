"""`locktop stream` and `locktop listen` with a real process, on each transport."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from support import tool
from support.streams import Ear, streaming
from support.targets import PATIENCE_S, StartTarget, Target

UDP_WARNING = "locktop: UDP is not encrypted"


@pytest.fixture
def ring(start_target: StartTarget) -> Target:
    """Three threads in a deadlock."""
    target = start_target("ring_of_three")
    target.expect("ready")
    target.go_on()
    target.truth()
    return target


def free_port(kind: socket.SocketKind, host: str = "127.0.0.1") -> int:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, kind) as probe:
        probe.bind((host, 0))
        port: int = probe.getsockname()[1]
        return port


def urls(directory: Path) -> dict[str, str]:
    return {
        "unix": f"unix://{directory}/socket",
        "tcp": f"tcp://127.0.0.1:{free_port(socket.SOCK_STREAM)}",
        "udp": f"udp://127.0.0.1:{free_port(socket.SOCK_DGRAM)}",
        "udp6": f"udp://[::1]:{free_port(socket.SOCK_DGRAM, '::1')}",
    }


def error_line(process: subprocess.Popen[str], begin: str) -> str:
    """Read the standard error up to a line that begins so."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(begin):
            return line
    raise AssertionError(f"never said: {begin}")


def test_sigusr2_saves_a_snapshot_and_the_stream_goes_on(
    ring: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Ear(f"unix://{tmp_path}/socket") as ear, streaming(ring.pid, ear.url) as sender:
        ear.wait_snapshots(1)
        sender.send_signal(signal.SIGUSR2)
        said = error_line(sender, "locktop: snapshot ").split()[-1]
        assert json.loads(Path(said).read_text())["process"]["pid"] == ring.pid
        ear.wait_snapshots(len(ear.snapshots) + 1)
        sender.terminate()
        assert sender.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("kind", ["unix", "tcp", "udp", "udp6"])
def test_the_snapshot_elsewhere_is_that_of_the_process(
    ring: Target, tmp_path: Path, kind: str
) -> None:
    url = urls(tmp_path)[kind]
    plain = ["--plain"] if kind == "tcp" else []
    listening = tool.start("listen", url, "--once", *plain)
    error_line(listening, "locktop: listening at ")
    with streaming(ring.pid, url, *plain) as sender:
        output, _ = listening.communicate(timeout=PATIENCE_S)
        sender.terminate()
        _, said = sender.communicate(timeout=PATIENCE_S)
    document, direct = json.loads(output), tool.snapshot(ring.pid)
    assert listening.returncode == 0
    assert document["process"]["pid"] == ring.pid
    assert [one["tid"] for one in document["threads"]] == [one["tid"] for one in direct["threads"]]
    assert {one["name"] for one in document["locks"]} == {one["name"] for one in direct["locks"]}
    ((found,), (wanted,)) = document["deadlocks"], direct["deadlocks"]
    assert [edge["tid"] for edge in found["cycle"]] == [edge["tid"] for edge in wanted["cycle"]]
    assert document["notes"] == direct["notes"]
    assert said.count(UDP_WARNING) == (1 if "udp" in kind else 0)
    assert sender.returncode == 0


def test_a_listener_that_comes_late_gets_a_whole_snapshot(ring: Target) -> None:
    port = free_port(socket.SOCK_DGRAM)
    with streaming(ring.pid, f"udp://127.0.0.1:{port}") as sender:
        error_line(sender, "locktop: streaming")
        with Ear(f"udp://127.0.0.1:{port}") as ear:
            ear.wait_snapshots(1)
            assert [len(one.cycle) for one in ear.snapshots[0].deadlocks] == [3]


@pytest.mark.parametrize("kind", ["unix", "tcp", "udp"])
def test_the_listener_shows_that_a_sender_went_and_takes_the_next_one(
    ring: Target, tmp_path: Path, kind: str
) -> None:
    with Ear(urls(tmp_path)[kind]) as ear:
        with streaming(ring.pid, ear.url, *(["--plain"] if kind == "tcp" else [])) as sender:
            ear.wait_snapshots(2)
            sender.kill()
            ear.wait(lambda ear: bool(ear.listener.stale), "waiting")
        count = len(ear.snapshots)
        with streaming(ring.pid, ear.url, *(["--plain"] if kind == "tcp" else [])):
            ear.wait_snapshots(count + 2)
            assert not ear.listener.stale
            assert ear.snapshots[-1].process.pid == ring.pid


def test_the_end_of_the_process_is_the_last_snapshot(ring: Target, tmp_path: Path) -> None:
    with Ear(urls(tmp_path)["unix"]) as ear, streaming(ring.pid, ear.url) as sender:
        ear.wait_snapshots(1)
        ring.kill()
        assert sender.wait(PATIENCE_S) == 0
        ear.wait(lambda ear: "has ended" in ear.listener.stale, "the end")
        assert ear.snapshots[-1].ended


@pytest.mark.parametrize("kind", ["unix", "udp"])
def test_a_signal_that_arrives_twice_at_once_still_sends_the_end(
    ring: Target, tmp_path: Path, kind: str
) -> None:
    """timeout(1) signals the process and the process group. Other numbers do not coalesce."""
    with Ear(urls(tmp_path)[kind]) as ear, streaming(ring.pid, ear.url) as sender:
        ear.wait_snapshots(2)
        sender.send_signal(signal.SIGTERM)
        sender.send_signal(signal.SIGHUP)
        _, said = sender.communicate(timeout=PATIENCE_S)
        ear.wait(lambda ear: "its sender was stopped" in ear.listener.stale, "the end")
    assert sender.returncode == 0
    assert "locktop: sent " in said


def test_the_sender_waits_for_a_listener_that_is_started_again(
    ring: Target, tmp_path: Path
) -> None:
    url = urls(tmp_path)["unix"]
    with Ear(url) as ear, streaming(ring.pid, url) as sender:
        ear.wait_snapshots(1)
        ear.listener.stop()
        assert "trying again" in error_line(sender, f"locktop: {url}: ")
        with Ear(url) as again:
            error_line(sender, "locktop: the listener is back")
            again.wait_snapshots(1)


def test_the_socket_is_private_and_goes_with_its_listener(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    listening = tool.start("listen", f"unix://{path}", "--once")
    error_line(listening, "locktop: listening at ")
    assert stat.filemode(path.lstat().st_mode) == "srw-------"
    listening.terminate()
    listening.communicate(timeout=PATIENCE_S)
    assert listening.returncode == 128 + signal.SIGTERM
    assert not path.exists()


def test_a_file_of_another_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    path.write_text("mine")
    done = tool.run("listen", f"unix://{path}", "--once")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"locktop: unix://{path}: there is such a file already; name another one\n"
    )
    assert path.read_text() == "mine"
    path.unlink()
    with Ear(f"unix://{path}"):
        assert tool.run("listen", f"unix://{path}", "--once").returncode == 2
        assert path.exists(), "a process listens there"


def test_the_socket_of_a_killed_listener_is_used_again(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    listening = tool.start("listen", f"unix://{path}", "--once")
    error_line(listening, "locktop: listening at ")
    listening.kill()
    listening.communicate(timeout=PATIENCE_S)
    assert path.exists()
    with Ear(f"unix://{path}"):
        pass
    assert not path.exists()


def test_a_process_of_another_user_is_refused() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")
    with tempfile.TemporaryDirectory() as directory, Ear(f"unix://{directory}/socket") as ear:
        os.chmod(directory, 0o755)
        os.chmod(f"{directory}/socket", 0o777)
        script = (
            "import os, socket, sys\n"
            "os.seteuid(65534)\n"
            "peer = socket.socket(socket.AF_UNIX)\n"
            "peer.connect(sys.argv[1])\n"
            "sys.exit(len(peer.recv(100)))\n"
        )
        done = subprocess.run([sys.executable, "-c", script, f"{directory}/socket"], check=False)
        assert done.returncode == 0, "no greeting"
        ear.wait_line("of another user: uid 65534")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["listen", "tcp://127.0.0.1:0"], "needs a terminal"),
        (["listen", "tcp://127.0.0.1:0", "--once"], "or --plain"),
        (["listen", "tcp://0.0.0.0:0", "--once", "--plain"], "needs --cert, --key and --ca"),
        (["listen", "udp://0.0.0.0:0", "--once"], "allow that with --plain"),
        (["listen", "bogus", "--once"], "no address of a stream"),
        (["stream", "-p", "1", "--to", "udp://::1:9"], "needs brackets"),
        (["stream", "-p", "1", "--to", "unix://x"], "whole path"),
        (["stream", "-p", "1", "--to", "unix:///no/such/socket"], "start `locktop listen"),
        (["stream", "-p", "1", "--to", "tcp://127.0.0.1:1", "--cert", "x"], "--key is missing"),
        (["stream", "-p", "1", "--to", "udp://127.0.0.1:9", "--datagram", "10"], "from 200 to"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line_and_status_2(arguments: list[str], words: str) -> None:
    own = [str(os.getpid()) if one == "1" else one for one in arguments]
    done = tool.run(*own)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert words in done.stderr


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_a_port_in_use_is_one_line_and_status_2(kind: str) -> None:
    with Ear(f"{kind}://127.0.0.1:0") as ear:
        done = tool.run("listen", ear.url, "--once", "--plain")
    assert (done.returncode, done.stdout) == (2, "")
    where = ear.url.partition("://")[2]
    assert done.stderr == (
        f"locktop: cannot listen at {where}: address already in use; name another port\n"
    )
