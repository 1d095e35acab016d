"""Turns snapshots into words, text reports, documents, graphs and call trees."""
