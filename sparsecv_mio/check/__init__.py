"""The checker of proofs: a short, readable program that uses only the standard library of Python and numpy.

docs/proof-format.md defines the contents of a proof and explains why the checks suffice. This folder runs without the
rest of the package, as `python -m sparsecv_mio.check PROOF DATA`, or as `python -m check PROOF DATA` next to a copy of
this folder. Only the module `command`, which is the command `sparsecv check`, needs the rest of the package.
"""

COMMANDS = {"check": "command"}
PROOF_CHECKER = "command"
