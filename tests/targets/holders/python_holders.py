"""Holders of Python's locks, one behaviour a scenario: python_holders.py SCENARIO.

Says {"waiters": {tid: [tids of the holders]}} when all waiters sleep, and ends with its stdin.
Without an argument it says the names of the scenarios, without those of the GIL if there is none.
Those that begin with "apart" show the limits that docs/sampling.md names.
"""

import importlib
import os
import sys
import sysconfig

from python_scenarios.registry import SCENARIOS

for name in ("blocks", "waits", "onlookers", "deadlocks", "apart"):
    importlib.import_module(f"python_scenarios.{name}")
if len(sys.argv) == 1:
    has_gil = sysconfig.get_config_var("Py_GIL_DISABLED") != 1
    print(*(name for name in SCENARIOS if has_gil or "gil" not in name), sep="\n")
else:
    SCENARIOS[sys.argv[1]]()
    sys.stdin.read()
sys.stdout.flush()
os._exit(0)
