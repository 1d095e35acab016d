"""Puts the figures of a whole bench on this machine into docs/overhead.md.

python bench/overhead_table.py docs/overhead.md [ARGUMENT of `locktop bench` ...]

What stands between the two marks is replaced. It takes some ten minutes; other work on the machine
is in the figures.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

BEGIN, END = "<!-- the table begins -->\n", "<!-- the table ends -->\n"


def replaced(page: str, table: str) -> str:
    """Return the page with another table."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        sys.exit(f"the page has no lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{begin}\n{table.strip()}\n\n{end}{after}"


def main(path: Path, arguments: list[str]) -> None:
    """Measure, then write."""
    replaced(path.read_text(), "")  # says what is missing before ten minutes are spent
    command = [sys.executable, "-m", "locktop.tui", "bench", "--markdown", *arguments]
    table = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    path.write_text(replaced(path.read_text(), table))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:] or ["--full"])
