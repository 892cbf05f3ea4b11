"""The checker of proofs: a short program to be read, which uses Python's library and numpy and nothing else.

docs/proof-format.md defines the contents of a proof and explains why the checks suffice. The folder runs without the
rest of the package: `python -m sparsecv_mio.check PROOF DATA`, or `python -m check PROOF DATA` in a folder that has a
copy of it. Only the module `command`, which is the command `sparsecv check`, needs the rest of the package.
"""

COMMANDS = {"check": "command"}
PROOF_CHECKER = "command"
