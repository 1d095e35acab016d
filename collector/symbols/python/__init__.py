"""The Python functions of a thread, read by a process of our own."""
