"""The screen and the command line: they show snapshots of the model, and measure nothing."""
