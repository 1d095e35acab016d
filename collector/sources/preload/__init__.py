"""The exact source: a process that runs with the library."""
