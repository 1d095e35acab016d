"""The commands, one a file: ``add_arguments`` declares the options, ``execute`` does the work."""
