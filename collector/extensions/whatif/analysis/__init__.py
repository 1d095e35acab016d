"""Predicts the throughput of a program after a change of its locks, by replaying its records."""
