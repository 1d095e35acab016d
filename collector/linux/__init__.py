"""What the Linux kernel tells of a process: /proc, futexes, system calls, perf events, ptrace."""
