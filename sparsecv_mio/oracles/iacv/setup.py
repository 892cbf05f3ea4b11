"""The problem and the method for a data set and the words of the command line."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.data.dataset import Dataset
from sparsecv_mio.data.standard import Intercept
from sparsecv_mio.errors import BadInput
from sparsecv_mio.oracles.iacv.erm import Erm
from sparsecv_mio.oracles.iacv.losses import LOSSES
from sparsecv_mio.oracles.iacv.penalties import L1, Ridge
from sparsecv_mio.oracles.iacv.trajectory import EpochDoubling, FixedStep, Solver, default_step
from sparsecv_mio.oracles.inputs import binary_labels, design_matrix
from sparsecv_mio.words import one_of

PENALTIES = {"ridge": Ridge, "l1": L1}
SOLVERS = ("gd", "sgd", "proxgd")
DEFAULT_BATCH = 100  # the smaller of the paper's two


def make_erm(
    dataset: Dataset, loss: str, penalty: str, lam: float, *, scale: str = "none", intercept: str = "none"
) -> Erm:
    """Return the leave-one-out problem on a data set's columns, as they are unless asked otherwise.

    Parameters
    ----------
    dataset : Dataset
        Columns and target.
    loss : {"logistic", "squared", "poisson"}
        `logistic` maps the two values of the target to -1 (the smaller) and +1.
    penalty : {"ridge", "l1"}
        `sum theta_j^2` or `sum |theta_j|`.
    lam : float
        Its weight beside the plain sum of losses.
    scale : {"none", "length", "variance"}
        Column scale.
    intercept : {"none", "global", "fold"}
        `global` centres the columns once on all rows, and the target too for the squared loss; `fold` appends a column
        of ones with no penalty to the centred columns: centring does not change the minimiser then, but allows longer
        steps.

    Returns
    -------
    Erm
        Fit i leaves out row i.

    Raises
    ------
    BadInput
        A word is unknown, lam is negative, or the target does not suit the loss.

    Examples
    --------
    >>> data = Dataset.from_arrays([[0.0], [1.0], [5.0]], [2.0, 5.0, 5.0])
    >>> make_erm(data, "logistic", "ridge", 0.1, intercept="fold").X.tolist()
    [[-2.0, 1.0], [-1.0, 1.0], [3.0, 1.0]]
    """
    loss, penalty = one_of(loss, LOSSES, "--loss"), one_of(penalty, PENALTIES, "--penalty")
    free = intercept == Intercept.FOLD
    X = design_matrix(dataset, scale, Intercept.GLOBAL if free else intercept)
    y = binary_labels(dataset)[0] if loss == "logistic" else dataset.y
    if loss == "squared" and intercept == Intercept.GLOBAL:
        y = y - y.mean()
    weights = None
    if free:
        X = np.column_stack([X, np.ones(dataset.n)])
        weights = np.append(np.ones(dataset.p), 0.0)
    return Erm(X, y, LOSSES[loss](), PENALTIES[penalty](weights), lam)


def make_solver(
    erm: Erm,
    kind: str,
    *,
    iterations: int,
    step: float | None = None,
    batch: int | None = None,
    doubling: int | None = None,
    seed: int = 0,
    scale_penalty: bool = False,
) -> Solver:
    """Return a method with its default step, one over the Lipschitz constant of the gradient.

    Parameters
    ----------
    erm : Erm
        Problem.
    kind : {"gd", "sgd", "proxgd"}
        Method.
    iterations : int
        Steps it will take (used where the loss has no Lipschitz constant).
    step : float, optional
        Step length instead of the default.
    batch : int, optional
        Rows per step of `sgd`; 100, or all rows if fewer, unless given.
    doubling : int, optional
        Epoch doubling: this many steps at the first length, twice as many at half of it, and so on.
    seed : int
        Seed of the batches.
    scale_penalty : bool
        See :class:`~sparsecv_mio.oracles.iacv.trajectory.Solver`.

    Returns
    -------
    Solver
        Checked against the problem.

    Raises
    ------
    BadInput
        An option does not suit the method, the penalty or the data.
    """
    kind = one_of(kind, SOLVERS, "--solver")
    if batch is not None and kind != "sgd":
        raise BadInput("--batch goes with --solver sgd: gd and proxgd use all rows")
    if step is not None and not (np.isfinite(step) and step > 0.0):
        raise BadInput(f"--step must be a number > 0, not {step}")
    if doubling is not None and doubling < 1:
        raise BadInput(f"--doubling must be at least 1 step, not {doubling}")
    if seed < 0:
        raise BadInput(f"--seed must be 0 or more, not {seed}")
    size = min(DEFAULT_BATCH, erm.n) if kind == "sgd" and batch is None else batch
    bare = Solver(FixedStep(1.0), kind == "proxgd", size, seed, scale_penalty)
    bare.check(erm)
    alpha = step or default_step(erm, proximal=bare.proximal, batch=size, iterations=iterations)
    schedule = FixedStep(alpha) if doubling is None else EpochDoubling(alpha, doubling)
    return Solver(schedule, bare.proximal, size, seed, scale_penalty)
