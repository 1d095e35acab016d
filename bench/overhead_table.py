"""Puts the figures of a whole bench on this machine into docs/overhead.md.

python bench/overhead_table.py docs/overhead.md [ARGUMENT of `locktop bench` ...]

The text between the two marks is replaced, by the budgets and the ratios. A run takes some minutes.
Other work on the machine is in the figures.
"""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"
#: The operations of the page. A page with all of them would be too long to read.
OPERATIONS = ("mutex", "read", "spin", "sem", "deep-wait", "deep-timeout", "trace")
#: The further tables are for those who run the bench.
LAST = "\nNanoseconds, median"
COLUMNS = 100


def replaced(page: str, table: str) -> str:
    """Return the page with another table."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"the page has no lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{begin}\n{table.strip()}\n\n{end}{after}"


def wrapped(table: str) -> str:
    """Return the table with its lines of prose cut to the width of a document."""
    return "\n".join(
        line if line.startswith("|") else textwrap.fill(line, COLUMNS, break_on_hyphens=False)
        for line in table.splitlines()
    )


def main(path: Path, arguments: list[str]) -> None:
    """Measure, then write."""
    replaced(path.read_text(), "")  # finds a missing mark before minutes are spent
    command = [sys.executable, "-m", "locktop.tui", "bench", "--markdown", *arguments]
    table = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    path.write_text(replaced(path.read_text(), wrapped(table.partition(LAST)[0])))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or ["--rounds", "11", "--only", *OPERATIONS])
