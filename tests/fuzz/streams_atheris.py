"""Fuzzes streams with atheris: ``make fuzz-streams``.

Inputs that are worth keeping go to ``corpus/streams``. test_hostile_streams.py runs these without
atheris.
"""

from __future__ import annotations

import sys

import atheris

from fuzz import hostile_streams


def main() -> None:
    """Run the fuzzer with the options of the command line, which are those of libFuzzer."""

    def run(data: bytes) -> None:
        hostile_streams.examine(data)

    # The finder of an editable install hides the modules from atheris.instrument_imports().
    atheris.instrument_all()
    atheris.Setup(sys.argv, run)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
