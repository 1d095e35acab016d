"""The terminal itself: escape codes, the driver, back-pressure."""
