"""Pure functions from a snapshot to lines of text, without widgets and without a terminal."""
