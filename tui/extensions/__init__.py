"""The extensions of locktop that bring commands and screens, a package each (tui/extension.py)."""
