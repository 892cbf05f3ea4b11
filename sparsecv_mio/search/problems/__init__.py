"""Problems of a search: the training rows of a fold, or the full data, with a loss.

The rest of `search` asks a problem for its capabilities and never for its loss.
"""
