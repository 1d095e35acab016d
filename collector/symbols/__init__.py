"""Names for addresses: memory maps, ELF symbols, DWARF lines, demangling."""
