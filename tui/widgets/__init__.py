"""The widgets of the screen, one in a file."""
