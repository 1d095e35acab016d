"""The scenarios of python_holders.py."""
