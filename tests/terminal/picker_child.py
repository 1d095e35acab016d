"""The real picker on a real terminal, over a list made by hand; test_terminal.py runs this program.

At its end the program prints which process the user picked.
"""

from __future__ import annotations

from typing import Any

from parent_watch import end_with_parent

from locktop.collector.sources.discover import Candidate
from locktop.tui.screens.process_picker import PickerApp
from locktop.tui.themed_app import run_app

FOUND = [
    Candidate(311, "squid", "squid -f /etc/squid.conf", "squid", "app", 24, True, ""),
    Candidate(312, "store", "store --port 7000", "store --port 7000", "app", 24, True, ""),
    Candidate(1, "init", "/sbin/init", "init", "root", 1, False, "it runs without the library"),
]


def main() -> None:
    end_with_parent()

    def attach(pid: int) -> Any:
        return f"{pid}"

    app = PickerApp(lambda: FOUND, attach, "night")
    status = run_app(app)
    print(f"picked {app.return_value} status {status}", flush=True)


main()
