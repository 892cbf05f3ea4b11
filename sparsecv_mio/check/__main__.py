"""Entry point of `python -m sparsecv_mio.check PROOF DATA`."""

import sys

from .main import run

if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
