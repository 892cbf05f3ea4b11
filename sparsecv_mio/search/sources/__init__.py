"""Sources of bounds: what the cells that are in question can be narrowed by, and what is in question.

A source says which pairs it can work on, does a slice of work for some of them as far as an effort or a deadline goes,
and books what that cost and brought (:mod:`sparsecv_mio.search.accounts`). Which slice is next is decided elsewhere
(:mod:`sparsecv_mio.search.rounds`).
"""
