"""DWARF: compilation units, functions, lines and variables."""
