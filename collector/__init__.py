"""The collector: from a watched process to snapshots of the model. It draws nothing."""
