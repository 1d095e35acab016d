"""Themes of the screen, one TOML file each; read by locktop.tui.theme_files."""
