"""The view of the predictions: what the key of the monitor opens."""

from __future__ import annotations

from locktop.collector.model import Lock, Snapshot
from locktop.tui.extensions.whatif.run import WhatIfRun
from locktop.tui.screens.view_host import ViewHost


class WhatIfView:
    """Opens the screen of the predictions, which go on when it is closed. See View."""

    def __init__(self, host: ViewHost) -> None:
        """``host``: the monitor."""
        self._host = host
        self._run = WhatIfRun(host.monitor, host.top, host.now)

    def open(self, snapshot: Snapshot, lock: Lock | None) -> None:
        from locktop.tui.extensions.whatif.predictors import LivePredictor, ReplayPredictor
        from locktop.tui.extensions.whatif.screen import WhatIfScreen

        host, run = self._host, self._run
        is_recorded = host.past.is_replay and host.past.moments is not None
        predictor = ReplayPredictor(host.past) if is_recorded else LivePredictor(host)
        screen = run.screen = WhatIfScreen(snapshot, run, predictor)

        def closed() -> None:
            if run.screen is screen:
                run.screen = None
            run.tell_going_on()

        host.show(screen, closed)

    def tick(self) -> None:
        self._run.tick()

    def annotate(self, snapshot: Snapshot) -> Snapshot:
        return self._run.annotate(snapshot)
