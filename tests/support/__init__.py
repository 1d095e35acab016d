"""Helpers that tests share: target programs, the command line, installed programs."""
