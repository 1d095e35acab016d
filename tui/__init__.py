"""The screen and the command line: draws snapshots of the model, looks at nothing itself."""
