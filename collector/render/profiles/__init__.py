"""Call trees of waiting, also from the reports of another profiler."""
