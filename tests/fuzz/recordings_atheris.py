"""Fuzzes recordings with atheris: ``make fuzz-recordings``.

Inputs that are worth keeping go to ``corpus/recordings``. test_hostile_recordings.py runs these
without atheris.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

from fuzz import hostile_recordings

#: In memory: a file is written for each input.
_DIRECTORY = Path("/dev/shm")


def main() -> None:
    """Run the fuzzer with the options of the command line, which are those of libFuzzer."""
    with tempfile.TemporaryDirectory(dir=_DIRECTORY) as directory:
        path = Path(directory) / "recording"

        def run(data: bytes) -> None:
            path.write_bytes(hostile_recordings.from_input(data))
            hostile_recordings.examine(path)

        # The finder of an editable install hides the modules from atheris.instrument_imports().
        atheris.instrument_all()
        atheris.Setup(sys.argv, run)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
