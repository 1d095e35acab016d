"""ELF files: headers, sections, symbol tables, separate debug files."""
