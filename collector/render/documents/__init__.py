"""The parts of the documents, JSON or msgpack, and how snapshots are written and read."""
