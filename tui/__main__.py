"""``python -m locktop.tui`` is the command ``locktop``."""

import sys

from locktop.tui.cli import main

if __name__ == "__main__":
    sys.exit(main())
