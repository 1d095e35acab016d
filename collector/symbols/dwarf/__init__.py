"""DWARF: units, functions, lines and variables."""
