"""The collector: from a watched process to snapshots of the model. The collector draws nothing."""
