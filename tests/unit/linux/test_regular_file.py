"""Files that anybody could have put at their path: opened only if they are what they must be."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from support.planted import PLANTED
from support.rights import NOBODY

from locktop.collector.linux import regular_file


def content(path: str | Path, **conditions: object) -> bytes:
    descriptor = regular_file.open_regular(path, **conditions)  # type: ignore[arg-type]
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def reason(path: str | Path, **conditions: object) -> str:
    before = os.listdir("/proc/self/fd")
    found = ""
    try:
        content(path, **conditions)
    except OSError as error:
        found = str(error.strerror)
    assert len(os.listdir("/proc/self/fd")) == len(before), "no descriptor stays open"
    return found


@pytest.mark.parametrize("kind", PLANTED)
def test_what_is_no_small_regular_file_is_refused_with_its_reason(
    kind: str, tmp_path: Path
) -> None:
    plant, says = PLANTED[kind]
    plant(tmp_path / "file")
    assert says in reason(tmp_path / "file", max_bytes=1 << 20)


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/tty"])
def test_a_device_is_not_opened(path: str) -> None:
    assert "regular" in reason(path)
    assert "regular" in reason(path, follow_link=True)


def test_a_socket_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("file")
        assert "regular" in reason("file")


def test_a_link_is_followed_only_if_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    assert "link" in reason(tmp_path / "link")
    assert content(tmp_path / "link", follow_link=True) == b"text"
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "to_fifo").symlink_to("fifo")
    assert "regular" in reason(tmp_path / "to_fifo", follow_link=True)


def test_the_size_may_be_the_limit(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"12345")
    assert content(tmp_path / "file", max_bytes=5) == b"12345"
    assert reason(tmp_path / "file", max_bytes=4) == "larger than 4 bytes"


def test_the_owner_must_be_one_of_these(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    own = os.geteuid()
    assert content(tmp_path / "file", owners=(own,)) == b"text"
    assert "belongs to" in reason(tmp_path / "file", owners=(own + 1, own + 2))
    if own == 0:
        os.chown(tmp_path / "file", NOBODY, NOBODY)
        assert f"uid {NOBODY}" in reason(tmp_path / "file", owners=(0,))
        assert content(tmp_path / "file", owners=(0, NOBODY)) == b"text"


def test_a_relative_path_begins_at_the_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"text")
    directory = os.open(tmp_path, os.O_PATH)
    try:
        assert content("file", directory=directory) == b"text"
    finally:
        os.close(directory)


def test_without_a_file_the_error_is_that_of_the_kernel(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        regular_file.open_regular(tmp_path / "file")
