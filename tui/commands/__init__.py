"""The commands, one in a file: ``add(subparsers)`` declares it, ``run(arguments)`` is the work."""
