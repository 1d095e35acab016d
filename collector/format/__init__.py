"""Values and findings in words: one place for what the screen and every export say."""
