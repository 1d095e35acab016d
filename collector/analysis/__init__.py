"""What can be worked out from the model: pure functions, no input and no output."""
