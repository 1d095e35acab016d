"""The sampled source: a process that nobody prepared."""
