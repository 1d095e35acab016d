"""Names of code that was compiled at run time."""
