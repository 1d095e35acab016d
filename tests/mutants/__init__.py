"""One change at a time to the code, to see whether the unit tests notice it."""
