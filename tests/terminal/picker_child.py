"""The real picker on a real terminal, over a list made by hand; run by test_terminal.py.

Says at its end which process was picked.
"""

from __future__ import annotations

from typing import Any

from locktop.collector.sources.discover import Candidate
from locktop.tui.screens.process_picker import PickerApp
from locktop.tui.themed_app import run_app

FOUND = [
    Candidate(311, "squid", "squid -f /etc/squid.conf", "app", 24, True, ""),
    Candidate(312, "store", "store --port 7000", "app", 24, True, ""),
    Candidate(1, "init", "/sbin/init", "root", 1, False, "it runs without the library"),
]


def main() -> None:
    def attach(pid: int) -> Any:
        return f"{pid}"

    app = PickerApp(lambda: FOUND, attach, "night")
    status = run_app(app)
    print(f"picked {app.return_value} status {status}", flush=True)


main()
