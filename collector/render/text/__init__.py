"""The text report, section by section."""
