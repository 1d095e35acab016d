"""Time: snapshots and ring records that are kept, in memory or in a file, and read back."""
