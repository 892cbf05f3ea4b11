"""Sources of bounds: the bounding methods that narrow the intervals of open subproblems (tau, gamma, fold).

A source proposes steps for the pairs (tau, gamma) that it can work on, runs one step at a time, and records its
attempts. The orders (:mod:`sparsecv_mio.search.orders`) decide which step comes next.
"""
