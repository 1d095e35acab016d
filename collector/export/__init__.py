"""Snapshots as JSON, msgpack and plain text, and the careful writing of files."""
