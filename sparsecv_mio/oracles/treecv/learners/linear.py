"""PEGASOS and averaged least-squares SGD: single-pass linear learners whose whole tree runs in compiled code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from sparsecv_mio.arrays import FloatArray
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.treecv.protocol import FoldRows


@dataclass(eq=False)
class _LinearSgd:
    """What both learners share: the model is one array, fed by :mod:`sparsecv_mio.kernels.treecv_linear`."""

    p: int
    model: FloatArray
    rate: float  # the kernel's parameter: lam or the step

    kind: ClassVar[int]

    def update(self, X: FloatArray, y: FloatArray) -> None:
        """Learn rows one by one in the order given. O(m p)."""
        from sparsecv_mio.kernels.treecv_linear import learn_rows

        learn_rows(self.kind, self.model, np.ascontiguousarray(X), y, self.rate)

    def update_saving(self, X: FloatArray, y: FloatArray) -> FloatArray:
        """Update and return the former model: every row may change every coefficient."""
        before = self.model.copy()
        self.update(X, y)
        return before

    def revert(self, change: FloatArray) -> None:
        """Restore the former model."""
        self.model[:] = change

    def score(self, X: FloatArray, y: FloatArray) -> float:
        """Mean loss. O(m p)."""
        from sparsecv_mio.kernels.treecv_linear import score_rows

        return float(score_rows(self.kind, self.model, np.ascontiguousarray(X), y, 0, X.shape[0]))

    def subtree(
        self, rows: FoldRows, first: int, last: int, shuffle_seed: int | None
    ) -> tuple[FloatArray, int]:
        """Run the recursion over some of the folds in compiled code; the model itself is not changed.

        Parameters
        ----------
        rows : FoldRows
            All rows.
        first, last : int
            Folds first .. last-1; this model has learned all the others.
        shuffle_seed : int or None
            As for :func:`~sparsecv_mio.oracles.treecv.tree.tree_cv`.

        Returns
        -------
        scores : (last - first,) array
            Scores of these folds.
        fed : int
            Rows learned by the models in between.
        """
        from sparsecv_mio.kernels.treecv_linear import Sgd, tree

        scores = np.empty(last - first)
        sgd = Sgd(self.kind, self.rate, shuffle_seed is not None, shuffle_seed or 0)
        fed = tree(sgd, self.model, rows.X, rows.y, rows.starts, first, last, scores)
        return scores, int(fed)

    def copy(self) -> Self:
        """Return an independent model in the same state."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__, model=self.model.copy())
        return twin


class PegasosLearner(_LinearSgd):
    """PEGASOS (Shalev-Shwartz et al. 2011), batches of one row, no projection: a linear support vector machine.

    Step t: `w <- (1 - 1/t) w + [y w'x < 1] y x / (lam t)`, which keeps `w = v / (lam t)` with v the sum of the `y x` of
    the rows inside the margin: no rescaling. The model is the last hypothesis, the loss the share of wrong signs.

    Parameters
    ----------
    p : int
        Columns.
    lam : float
        Weight of `(lam / 2) ||w||^2` against the mean hinge loss, > 0.

    Raises
    ------
    BadInput
        lam is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> learner = PegasosLearner(1, lam=0.1)
    >>> learner.update(np.array([[1.0], [-2.0]]), np.array([1.0, -1.0]))
    >>> learner.coefficients.tolist(), learner.score(np.array([[3.0]]), np.array([1.0]))
    ([5.0], 0.0)
    """

    kind = 0

    def __init__(self, p: int, lam: float = 1e-6) -> None:
        if not (np.isfinite(lam) and lam > 0.0):
            raise BadInput(f"PEGASOS needs lam > 0, not {lam}")
        super().__init__(p, np.zeros(p + 1), lam)

    @property
    def coefficients(self) -> FloatArray:
        """(p,) weights w."""
        t = float(self.model[-1])
        return np.zeros(self.p) if t == 0.0 else np.asarray(self.model[: self.p] / (self.rate * t))

    def predict(self, X: FloatArray) -> FloatArray:
        """(m,) signs, +1 on the boundary."""
        return np.where(X @ self.coefficients >= 0.0, 1.0, -1.0)


class LeastSquaresSgd(_LinearSgd):
    """Averaged least-squares SGD in the unit ball: the robust stochastic approximation of Nemirovski et al. (2009).

    Step: `w <- P(w - 2 a (x'w - y) x)`, P the projection on `||w||_2 <= 1`; the model is the mean of the iterates after
    each row, the loss `(x'w - y)^2`. The paper takes `a = n^(-1/2)`.

    Parameters
    ----------
    p : int
        Columns.
    step : float
        Step length a, > 0.

    Raises
    ------
    BadInput
        The step is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> learner = LeastSquaresSgd(1, step=0.5)
    >>> learner.update(np.array([[1.0], [1.0]]), np.array([0.5, 0.5]))
    >>> learner.coefficients.tolist(), learner.score(np.array([[2.0]]), np.array([1.5]))
    ([0.5], 0.25)
    """

    kind = 1

    def __init__(self, p: int, step: float) -> None:
        if not (np.isfinite(step) and step > 0.0):
            raise BadInput(f"least-squares SGD needs a step > 0, not {step}")
        super().__init__(p, np.zeros(2 * p + 1), step)

    @property
    def coefficients(self) -> FloatArray:
        """(p,) averaged weights."""
        return np.asarray(self.model[self.p : 2 * self.p] / max(float(self.model[-1]), 1.0))

    def predict(self, X: FloatArray) -> FloatArray:
        """(m,) predictions."""
        return np.asarray(X @ self.coefficients)
