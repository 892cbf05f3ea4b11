"""Problems of a search: best-subset problems on the training rows of a fold, or on the full data, with a loss.

The other modules of `search` read what a problem can do, and never its loss.
"""
