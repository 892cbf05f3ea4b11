"""First answers: a good support for every fold, gamma and tau in seconds, before anything is proved.

    for paths in first_supports(data, folds, grid, threads=2, expired=clock.expired):
        error[:, :, paths.fold] = paths.held_out          # (G, T); a later one of the same fold replaces it

Every fold comes early with a quick answer (one path at a middle gamma, refitted at every other) and then again, better
each time. A support is chosen by the training objective of its fold alone, so `held_out` is an estimate of what the
optimum of the cell has (theory section 13), and `objective` an upper bound of its training objective: use it as a
start (`paths.support(g, t)`), never as a certificate of the held-out error.

It is meant for up to about a thousand folds. With more (leave-one-out of many rows) the supports of all rows, refitted
in every fold by the identities of theory section 5 (`search/allfolds`), are the cheaper answer.
"""

from __future__ import annotations

from sparsecv_mio.search.heuristics.first_supports import first_supports
from sparsecv_mio.search.heuristics.fold_search import FoldPaths

__all__ = ["FoldPaths", "first_supports"]
