"""The checker of proofs, for anyone to read: it imports nothing of the rest, only Python's library and numpy.

docs/proof-format.md says what a proof holds and why what is checked here suffices. The folder runs by itself:
`python -m sparsecv_mio.check PROOF DATA`, or as `python -m check` where it is copied to.
"""
