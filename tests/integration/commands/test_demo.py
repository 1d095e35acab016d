"""``locktop demo`` without a terminal: one report of the program."""

from __future__ import annotations

import re

from support import tool


def test_the_report_has_the_use_of_time_of_a_whole_pause() -> None:
    done = tool.run_alone("demo", "--seconds", "60")
    assert done.returncode == 0, done.stderr
    (span,) = re.findall(r"WHERE THE TIME OF THREADS WENT in the last (\S+ \S+),", done.stdout)
    number, unit = span.split()
    assert float(number) * {"ms": 1e-3, "s": 1.0}[unit] >= 0.4
