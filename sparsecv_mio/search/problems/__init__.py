"""Classes for the best-subset problems of a search, on the training rows of a fold or on the full data, by loss.

Other modules of `search` depend only on the capabilities of a problem, not on its loss.
"""
