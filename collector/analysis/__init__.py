"""Analysis of the model: pure functions without input or output."""
