"""The shared memory of a preloaded process: layout, segment, reader, event ring."""
