"""Problems of a search: the training rows of a fold, or the full data, with a loss.

The rest of `search` reads the capabilities of a problem and never its loss.
"""
