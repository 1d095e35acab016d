"""Call stacks of another process's threads, taken from outside."""
