"""The checker of proofs, written to be read: it uses only Python's library and numpy, nothing else of the package.

docs/proof-format.md defines the contents of a proof and explains why the checks suffice. The folder runs alone:
`python -m sparsecv_mio.check PROOF DATA`, or `python -m check` after the folder has been copied. `command` alone, the
command `sparsecv check`, needs the package, whose satellite this folder is.
"""

COMMANDS = {"check": "command"}
PROOF_CHECKER = "command"
