"""Entry point of `python -m sparsecv_mio.check PROOF DATA`."""

import sys

from .main import run_check

if __name__ == "__main__":
    sys.exit(run_check(sys.argv[1:]))
