"""zstd from Debian's source, built with -finstrument-functions -O2: its calls, one by one."""

from __future__ import annotations

import json
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support import tool, uftrace
from support.targets import TARGETS, Target
from support.watched import Need

from locktop.collector.sources.launch import preload_environment

pytestmark = pytest.mark.big

FLAGS = ("-O2", "-g1", "-finstrument-functions", "-Dmain=program_main")
MACROS = ("-DZSTD_MULTITHREAD", "-DZSTD_DISABLE_ASM", "-DXXH_NAMESPACE=ZSTD_")
FOLDERS = ("lib/common", "lib/compress", "lib/decompress", "lib/dictBuilder", "programs")
#: uftrace writes 32 bytes for each call.
INPUT_SIZE = 60_000


def source(directory: Path) -> Path:
    """Return the unpacked source of Debian's package. Skips without a network."""
    if shutil.which("apt-get") is None:
        pytest.skip("there is no apt-get")
    (directory / "lists" / "partial").mkdir(parents=True)
    (directory / "sources.list").write_text(
        "deb-src http://deb.debian.org/debian bookworm main\n", encoding="utf-8"
    )
    options = [f"Dir::Etc::sourcelist={directory}/sources.list", "Dir::Etc::sourceparts=-"]
    options += [f"Dir::State::lists={directory}/lists", f"Dir::Cache={directory}/cache"]
    apt = ["apt-get", "-q", *(f"-o{one}" for one in (*options, "APT::Sandbox::User="))]
    for rest in (["update"], ["source", "--download-only", "zstd"]):
        done = subprocess.run([*apt, *rest], cwd=directory, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"the source of zstd is not to be had: {done.stderr[-200:]}")
    (archive,) = directory.glob("libzstd_*.orig.tar.xz")
    subprocess.run(["tar", "xf", str(archive)], cwd=directory, check=True)
    (unpacked,) = directory.glob("zstd-*/")
    return unpacked


def built(directory: Path) -> Path:
    """Return the instrumented program, which waits at its end."""
    root = source(directory)
    files = [file for folder in FOLDERS for file in sorted((root / folder).glob("*.c"))]

    def compiled(file: Path) -> str:
        output = str(directory / f"{file.parent.name}-{file.name}.o")
        subprocess.run(["cc", *FLAGS, *MACROS, "-c", str(file), "-o", output], check=True)
        return output

    with ThreadPoolExecutor(2) as pool:
        objects = list(pool.map(compiled, files))
    program = directory / "program"
    end = str(TARGETS / "calls" / "program_end.c")
    subprocess.run(["cc", "-pthread", "-o", str(program), *objects, end], check=True)
    return program


def test_each_function_has_the_count_of_uftrace(need: Need, tmp_path: Path) -> None:
    counter = need("uftrace")
    program = built(tmp_path)
    data = tmp_path / "data"
    data.write_bytes(program.read_bytes()[:INPUT_SIZE])
    # One thread makes the same calls in each run.
    command: list[str | Path] = [
        program,
        "-q",
        "-f",
        "--single-thread",
        "-19",
        data,
        "-o",
        tmp_path / "packed",
    ]
    with Target(
        ["sh", "-c", 'exec "$@" 2>&1', "sh", *command], preload_environment("contended")
    ) as target:
        assert target.truth() == {"status": 0}
        done = tool.run_alone("calls", "-p", target.pid, "--format", "json")
        target.go_on()
    (tmp_path / "packed").unlink()  # zstd would call more functions to replace the file
    document = json.loads(done.stdout)
    assert [document[name] for name in ("too_deep", "left_out", "unmatched")] == [0, 0, 0]
    own_s = sum(one["own_s"] for one in document["functions"])
    assert own_s == pytest.approx(document["traced_s"], rel=0.01)
    ours = {one["function"]: one["count"] for one in document["functions"]}
    assert len(ours) > 300
    assert sum(ours.values()) > 1_000_000
    assert ours == uftrace.counts(counter, command, tmp_path / "trace")
