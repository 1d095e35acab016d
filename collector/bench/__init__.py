"""Measures the cost of the library on this machine, with the benchmark program."""
