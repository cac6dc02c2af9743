"""``python -m sunzi`` is the command ``sunzi``."""

import sys

from sunzi.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
