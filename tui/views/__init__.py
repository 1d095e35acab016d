"""From a snapshot to lines of text: pure functions, no widget and no terminal."""
