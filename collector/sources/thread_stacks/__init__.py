"""The stacks of all threads of a process, also of those that wait for no lock."""
