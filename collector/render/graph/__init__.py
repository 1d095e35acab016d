"""Deadlocks as graphs: DOT and Mermaid."""
