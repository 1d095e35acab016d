"""Call stacks of another process's threads."""
