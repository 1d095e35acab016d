"""Where snapshots come from: a preloaded process, or a process sampled from /proc."""
