"""The extensions of locktop that the collector brings, a package each (extension/parts.py)."""
