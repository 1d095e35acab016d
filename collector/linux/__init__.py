"""Readers of the kernel's data on a process: /proc, futexes, system calls, perf events, ptrace."""
