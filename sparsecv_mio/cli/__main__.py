"""The entry point of `python -m sparsecv_mio.cli`."""

from sparsecv_mio.cli import main

main()
