"""Questions about single threads, which both sources ask: stacks, activity, time."""
