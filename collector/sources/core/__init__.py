"""The core source: a process that a core dump has saved."""
