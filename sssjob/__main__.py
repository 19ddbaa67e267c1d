"""``python -m sssjob``: the command line."""

import sys

from sssjob.cli import main

if __name__ == "__main__":
    sys.exit(main())
