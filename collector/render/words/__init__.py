"""Figures, source locations and findings as words, for the screen and for all documents."""
