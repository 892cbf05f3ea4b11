"""Sources of bounds: what the cells that are in question can be narrowed by, and what is in question.

A source proposes steps for the pairs that it can work on, does one at a time, and notes what it tried. Which step is
next is decided elsewhere (:mod:`sparsecv_mio.search.orders`).
"""
