"""The benchmark programs of RocksDB and LevelDB: threads that read at random from a cache."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from whatif_programs.base import (
    MEASURED_S,
    RealChange,
    RealProgram,
    Run,
    Setting,
    need,
    on_cpus,
    process,
)
from whatif_programs.debian_source import source
from whatif_programs.patching import replace_in

_LONG_S = 120


class RocksDB(RealProgram):
    """RocksDB of Debian. Its cache has one shard in place of 64."""

    name = "rocksdb"
    unit = "reads"
    recorded_s = 1.0
    base: ClassVar[Setting] = {"threads": 8, "shard_bits": 0, "cpus": 0}
    changes: ClassVar[Sequence[RealChange]] = (
        RealChange("64 shards", "--split", "LRUCacheShard", "64", {"shard_bits": 6}),
        RealChange("2 threads", "--threads", "db_bench", "2", {"threads": 2}),
        RealChange("1 CPU", "--cpus", "", "1", {"cpus": 1}),
    )
    _KEYS, _BYTES = 60_000, 5_000

    def prepare(self, cache: Path) -> None:
        self._data = cache / "rocksdb"
        self._command = [need("db_bench", "rocksdb-tools"), f"--db={self._data}"]
        self._command += [f"--num={self._KEYS}", f"--value_size={self._BYTES}"]
        self._command += ["--compression_type=none"]
        if not (self._data / "CURRENT").exists():
            fill = [*self._command, "--benchmarks=fillseq"]
            subprocess.run(fill, check=True, capture_output=True)

    def _reading(self, setting: Setting, seconds: float) -> list[str | Path]:
        options = ["--benchmarks=readrandom", "--use_existing_db", "--cache_size=50000000"]
        options += [f"--threads={setting['threads']}", f"--duration={seconds:.0f}"]
        options += [f"--cache_numshardbits={setting['shard_bits']}"]
        return on_cpus([*self._command, *options], setting["cpus"])

    @contextmanager
    def running(self, setting: Setting, environment: Mapping[str, str]) -> Iterator[Run]:
        with process(self._reading(setting, _LONG_S), environment) as started:
            yield Run(started.pid, lambda: 0.0)

    def rate(self, setting: Setting) -> float:
        command = [str(part) for part in self._reading(setting, MEASURED_S)]
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return float(re.search(r"readrandom .* (\d+) ops/sec", said)[1])  # type: ignore[index]


class LevelDB(RealProgram):
    """LevelDB, built from Debian's source. Each read of a file takes as long as from a remote disk.

    The unchanged program has one shard in each cache; the changed one has 16, as LevelDB has.
    """

    name = "leveldb"
    unit = "reads"
    recorded_s = 2.0
    base: ClassVar[Setting] = {"threads": 8, "shard_bits": 0}
    changes: ClassVar[Sequence[RealChange]] = (
        RealChange("16 shards", "--split", "port::Mutex::Lock", "16", {"shard_bits": 4}),
        RealChange("16 threads", "--threads", "db_bench", "16", {"threads": 16}),
        RealChange("4 threads", "--threads", "db_bench", "4", {"threads": 4}),
    )
    _KEYS, _BYTES, _READ_US = 20_000, 2000, 300
    _CXX = ("g++", "-O2", "-g", "-std=c++17", "-pthread", "-DLEVELDB_PLATFORM_POSIX=1")
    _HAVE = ("-DHAVE_FDATASYNC=1", "-DHAVE_O_CLOEXEC=1", "-DHAVE_CRC32C=0", "-DHAVE_SNAPPY=0")

    def prepare(self, cache: Path) -> None:
        need("g++", "g++")
        self._directory = cache / "leveldb"
        self._data = self._directory / "data"
        if not self._program(4).exists():
            self._build(source("leveldb", cache))
        if not (self._data / "CURRENT").exists():
            fill = [*self._command(0), "--benchmarks=fillseq"]
            subprocess.run(fill, check=True, capture_output=True)

    def _program(self, shard_bits: int) -> Path:
        return self._directory / f"db_bench-{shard_bits}"

    def _command(self, shard_bits: int) -> list[str]:
        sizes = [f"--num={self._KEYS}", f"--value_size={self._BYTES}"]
        return [str(self._program(shard_bits)), f"--db={self._data}", *sizes]

    def _build(self, code: Path) -> None:
        self._directory.mkdir(exist_ok=True)
        replace_in(code / "util/cache.cc", r"kNumShardBits = \d+;", "kNumShardBits = SHARD_BITS;")
        # A shift by 32 is defined, too.
        replace_in(code / "util/cache.cc", r"return hash >>", "return uint64_t{hash} >>")
        # All files are read by system calls, and none is mapped.
        disk = code / "util/env_posix.cc"
        replace_in(disk, r"(kDefaultMmapLimit =) [^;]*;", r"\1 0;")
        replace_in(disk, r"(ssize_t read_size = ::pread)", rf"::usleep({self._READ_US});\n    \1")
        # The benchmark needs none of Google Test.
        tested = code / "util/testutil.h"
        replace_in(tested, r"#include \"g.*\n|MATCHER.*\n|inline int RandomSeed[^}]*}", "")
        files = [
            one
            for part in ("db", "table", "util", "helpers/memenv")
            for one in sorted((code / part).glob("*.cc"))
            if not re.search(r"_test\.cc|leveldbutil|windows|/cache\.cc|dumpfile", str(one))
        ]
        compiler = [*self._CXX, *self._HAVE, f"-I{code}", f"-I{code}/include"]
        objects = self._directory / "objects"
        objects.mkdir(exist_ok=True)
        files.append(code / "benchmarks/db_bench.cc")
        subprocess.run([*compiler, "-c", *files], cwd=objects, check=True)
        for bits in (0, 4):
            command = [*compiler, f"-DSHARD_BITS={bits}", code / "util/cache.cc"]
            command += [*objects.glob("*.o"), "-o", self._program(bits)]
            subprocess.run(command, check=True)

    def _reading(self, setting: Setting, reads: int) -> list[str]:
        options = ["--benchmarks=readrandom", "--use_existing_db=1", f"--reads={reads}"]
        options += [f"--threads={setting['threads']}", "--cache_size=4000000"]
        return [*self._command(setting["shard_bits"]), *options]

    @contextmanager
    def running(self, setting: Setting, environment: Mapping[str, str]) -> Iterator[Run]:
        with process(self._reading(setting, 10**8), environment) as started:
            yield Run(started.pid, lambda: 0.0)

    def rate(self, setting: Setting) -> float:
        reads = round(MEASURED_S * 1e6 / (self._READ_US * 1.5))
        command = self._reading(setting, reads)
        said = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        micros = float(re.search(r"readrandom +: +([\d.]+) micros/op", said)[1])  # type: ignore[index]
        return setting["threads"] * 1e6 / micros
