"""Sources of bounds: the bounding methods that narrow the intervals of open subproblems.

A source proposes steps for the pairs that it can work on, runs one step at a time, and notes what it tried. The orders
(:mod:`sparsecv_mio.search.orders`) decide which step comes next.
"""
