"""Writing of proofs of records, which `sparsecv check` verifies; docs/proof-format.md defines their format."""
