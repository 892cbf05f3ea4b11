"""Writing of the proofs that `sparsecv check` verifies; docs/proof-format.md defines their format."""
