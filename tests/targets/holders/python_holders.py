"""Holders of Python's locks, one behaviour a scenario: python_holders.py SCENARIO.

Says {"waiters": {tid: [tids of the holders]}} when all waiters sleep, and ends with its stdin.
Without an argument it says the names of the scenarios. Those that begin with "apart" show the
limits that docs/sampling.md names.
"""

import importlib
import os
import sys

from python_scenarios.registry import SCENARIOS

for name in ("blocks", "waits", "onlookers", "deadlocks", "apart"):
    importlib.import_module(f"python_scenarios.{name}")
if len(sys.argv) == 1:
    print(*SCENARIOS, sep="\n")
else:
    SCENARIOS[sys.argv[1]]()
    sys.stdin.read()
sys.stdout.flush()
os._exit(0)
