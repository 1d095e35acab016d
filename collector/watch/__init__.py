"""Watching without a screen: scan policy, alerts, and the commands and snapshots of alerts."""
