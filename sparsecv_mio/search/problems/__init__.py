"""Classes for the best-subset problems of a search, on the training rows of a fold or on the full data, by loss.

The loop, orders, sources and the writer depend only on the capabilities of a problem, not on its loss.
"""
