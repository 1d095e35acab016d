"""Targets that run as in a container: another root, other process ids.

tests/targets/access/run_in_container.c makes the container.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from locktop.collector.sources.launch import library
from support.targets import Compiler, Target

#: The directory of the programs in the container; no such directory exists outside.
INSIDE = Path("/only/here")
_LOADED = re.compile(r"(/\S+) \(0x")


@contextmanager
def root_directory(*programs: Path, shm: bool = True) -> Iterator[Path]:
    """Make a root directory with copies of programs, of the library and of all that they load.

    Every user may enter the directory; pytest's own directories are closed.
    """
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        root.chmod(0o755)
        for directory in ("proc", "tmp", "dev/shm" if shm else "dev", str(INSIDE)[1:]):
            (root / directory).mkdir(parents=True)
        own = (*programs, library())
        for file in own:
            shutil.copy(file, root / str(INSIDE)[1:])
        for path in {path for file in own for path in _loaded(file)}:
            copy = root / path[1:]
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
        yield root


def _loaded(file: Path) -> list[str]:
    said = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
    return _LOADED.findall(said)


@contextmanager
def contained(
    compiler: Compiler,
    sort: str,
    name: str,
    *arguments: str,
    preloaded: bool = True,
    shm: bool = True,
) -> Iterator[tuple[Target, int]]:
    """Run a target in a container; ``sort`` is an argument of run_in_container.c.

    Yields the target and its process id outside the container.
    """
    program = compiler.program(name)
    with root_directory(program, shm=shm) as root:
        own_root = sort != "pid"
        preload = INSIDE / "liblocktop.so" if own_root else library()
        variables = [f"LD_PRELOAD={preload}"] if preloaded else []
        inside = INSIDE / program.name if own_root else program
        start: list[str | Path] = [compiler.program("run_in_container"), sort, root, *variables]
        with Target([*start, inside, *arguments]) as target:
            yield target, int(target.line())
            if not own_root:  # a program that ends by itself removes its file
                target.finish()
