"""Functions of the loss of a row, a smooth convex function l >= 0 of its margin, selected by the number of the loss.

docs/theory/glm.md, section 11, lists the requirements on l. Each loss has its own file, and one line in each function
of this module.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.log_loss import log_loss_roundings, log_losses
from sparsecv_mio.kernels.poisson import half_deviance_roundings, half_deviances

EPS = 2.220446049250313e-16
LOGISTIC, POISSON = 0, 1
UNKNOWN = "kernels have no loss of this code: add a line for it to kernels/row_losses"


class Response(NamedTuple):
    """Data of the losses of rows.

    Attributes
    ----------
    v : (n,) array
        Weights > 0.
    y : (n,) array
        Targets; with logistic loss 1 and -1, by which predictors are multiplied to give margins.
    loss : int
        LOGISTIC or POISSON.
    """

    v: np.ndarray
    y: np.ndarray
    loss: int


class State(NamedTuple):
    """Work arrays of a fit, by row: margins, `falls` -l', `others`, losses, and two work arrays.

    `others` is l'' or, with logistic loss, the factor by which falls are multiplied to give l'': 1 minus the fall.
    """

    margins: np.ndarray
    falls: np.ndarray
    others: np.ndarray
    losses: np.ndarray
    work: np.ndarray
    bits: np.ndarray


@njit(cache=True, nogil=True, error_model="numpy")
def new_state(n):
    """Return arrays for n rows."""
    return State(np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n, dtype=np.int64))


@njit(cache=True, nogil=True, error_model="numpy")
def margin_sign(response, i):
    """Return the factor from the predictor of a row to its margin."""
    return response.y[i] if response.loss == LOGISTIC else 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def fill(response, margins, state):
    """Fill falls, others and losses of a state at its margins, each within 8 roundings of its parts."""
    if response.loss == LOGISTIC:
        log_losses(margins, state.falls, state.others, state.losses, state.work, state.bits)
    elif response.loss == POISSON:
        half_deviances(margins, response.y, state.falls, state.others, state.losses)
    else:
        raise ValueError(UNKNOWN)


@njit(cache=True, nogil=True, error_model="numpy")
def curvatures(response, state, out):
    """Fill `v l''` at a state."""
    v = response.v
    if response.loss == LOGISTIC:
        for i in range(out.shape[0]):
            out[i] = v[i] * state.falls[i] * state.others[i]
    elif response.loss == POISSON:
        for i in range(out.shape[0]):
            out[i] = v[i] * state.others[i]
    else:
        raise ValueError(UNKNOWN)


@njit(cache=True, nogil=True, error_model="numpy")
def roundings(response, state, off, out):
    """Return a bound on the rounding of the weighted sum of losses; fill bounds on that of `v l'`, row by row.

    Both include the rounding of sums.

    Parameters
    ----------
    response : Response
        Data.
    state : State
        State.
    off : (n,) array
        Bounds on the errors of margins, at most 1/2; raised by the error that the loss adds.
    out : (n,) array
        Array to fill.
    """
    if response.loss == LOGISTIC:
        return log_loss_roundings(response.v, state, off, out)
    if response.loss == POISSON:
        return half_deviance_roundings(response.v, response.y, state, off, out)
    raise ValueError(UNKNOWN)
