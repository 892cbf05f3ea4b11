"""Problems of a search: best-subset problems on the training rows of a fold, or on the full data, with a loss.

The other modules of `search` depend on the capabilities of a problem, and never on its loss.
"""
