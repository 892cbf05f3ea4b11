"""Proofs of records, which `sparsecv check` reads: see docs/proof-format.md."""
