"""The Python functions of a thread, read from outside by a process of their own."""
