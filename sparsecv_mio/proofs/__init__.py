"""Functions that write the proofs that `sparsecv check` verifies (format: docs/proof-format.md)."""
