"""Proof of the probable holders: programs that say who holds their locks, and a judge."""
