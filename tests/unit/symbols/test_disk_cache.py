"""Results on disk: sound or ignored, private, bounded."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from locktop.collector.symbols.disk_cache import DiskCache, usual_directory


def files(directory: Path) -> list[Path]:
    return sorted(directory.iterdir())


def test_stored_bytes_are_private_and_available_to_the_next_run(tmp_path: Path) -> None:
    directory = tmp_path / "caches" / "locktop"
    DiskCache(directory).put("build/1f", b"index")
    assert DiskCache(directory).get("build/1f") == b"index"
    assert DiskCache(directory).get("build/2f") is None
    (file,) = files(directory)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(directory.stat().st_mode) == 0o700


def test_a_damaged_or_foreign_cache_file_is_ignored(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put("a", b"index" * 100)
    cache.put("b", b"other" * 100)
    a = next(f for f in files(tmp_path) if b"index" in f.read_bytes())
    b = next(f for f in files(tmp_path) if f != a)
    whole = a.read_bytes()
    for at in range(0, len(whole), 7):
        a.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        assert cache.get("a") is None
        a.write_bytes(whole[:at])
        assert cache.get("a") is None
    a.write_bytes(b.read_bytes())
    assert cache.get("a") is None
    a.write_bytes(whole)
    assert cache.get("a") == b"index" * 100


def test_only_a_regular_cache_file_is_read(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path)
    cache.put("a", b"index")
    (file,) = files(tmp_path)
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert cache.get("a") is None
    file.unlink()
    os.mkfifo(file)
    assert cache.get("a") is None
    file.unlink()
    file.mkdir()
    assert cache.get("a") is None
    cache.put("a", b"index")  # fails without an error


def test_the_least_recently_used_goes_first(tmp_path: Path) -> None:
    cache = DiskCache(tmp_path, max_total=10_000)
    for number in range(5):
        cache.put(str(number), bytes(1500))
        os.utime(max(files(tmp_path), key=lambda f: f.stat().st_mtime), (number, number))
    assert cache.get("0") is not None, "used now"
    for number in range(5, 8):
        cache.put(str(number), bytes(1500))
    assert sum(file.stat().st_size for file in files(tmp_path)) <= 10_000
    there = [number for number in range(8) if cache.get(str(number)) is not None]
    assert 0 in there
    assert 7 in there
    assert 1 not in there
    cache.put("too large", bytes(20_000))
    assert cache.get("too large") is None


def test_without_a_directory_nothing_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    for directory in (None, tmp_path / "file", Path("/proc/locktop")):
        cache = DiskCache(directory)
        cache.put("a", b"index")
        assert cache.get("a") is None
    monkeypatch.setenv("LOCKTOP_CACHE", "none")
    assert usual_directory() is None
    monkeypatch.setenv("LOCKTOP_CACHE", str(tmp_path))
    assert usual_directory() == tmp_path
    monkeypatch.setenv("LOCKTOP_CACHE", "not/absolute")
    assert usual_directory() is None
    monkeypatch.delenv("LOCKTOP_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert usual_directory() == tmp_path / "locktop"


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a directory away")
def test_nothing_is_written_into_a_directory_of_another_user(tmp_path: Path) -> None:
    os.chown(tmp_path, 65534, 65534)
    DiskCache(tmp_path).put("a", b"index")
    assert files(tmp_path) == []
    os.chown(tmp_path, 0, 0)
    cache = DiskCache(tmp_path)
    cache.put("a", b"index")
    os.chown(files(tmp_path)[0], 65534, 65534)
    assert cache.get("a") is None
