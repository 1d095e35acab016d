"""Exit statuses that are not those of one command."""

EXIT_WRONG = 2
#: After a fault of the screen: EX_SOFTWARE of sysexits.h, which no command has as an answer.
EXIT_SCREEN_FAULT = 70
#: The terminal has hung up: 128 and the number of SIGHUP.
EXIT_HANG_UP = 129
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141
