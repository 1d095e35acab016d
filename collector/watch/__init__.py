"""Watching without a screen: when to scan, which findings are alerts, which commands they start."""
