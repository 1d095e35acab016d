"""The user's files: rules for idle waits, suppressions of potential deadlocks."""
