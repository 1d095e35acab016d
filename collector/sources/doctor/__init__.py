"""Tells how much of a process locktop can see on this machine, and why not more."""
