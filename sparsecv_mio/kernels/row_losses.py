"""What kernels ask of the loss of a row, by the code of the loss: a smooth convex l >= 0 of its margin.

docs/theory/glm.md, section 11, says what each part has to promise. A loss is one file; here is a line of it for each.
"""

from typing import NamedTuple

import numpy as np

from sparsecv_mio.kernels.jit import njit
from sparsecv_mio.kernels.log_loss import log_loss_roundings, log_losses
from sparsecv_mio.kernels.poisson import half_deviance_roundings, half_deviances

EPS = 2.220446049250313e-16
LOGISTIC, POISSON = 0, 1


class Response(NamedTuple):
    """What the losses of rows are made of.

    Attributes
    ----------
    v : (n,) array
        Weights > 0.
    y : (n,) array
        Targets: with logistic loss 1 and -1, which margins are the predictors times.
    loss : int
        LOGISTIC or POISSON.
    """

    v: np.ndarray
    y: np.ndarray
    loss: int


class State(NamedTuple):
    """What a fit works on, by row: margins, `falls` -l', `others`, losses, and two for numbers.

    `others` is l'', or what falls are to be multiplied by: 1 less the fall, with logistic loss.
    """

    margins: np.ndarray
    falls: np.ndarray
    others: np.ndarray
    losses: np.ndarray
    work: np.ndarray
    bits: np.ndarray


@njit(cache=True, nogil=True, error_model="numpy")
def new_state(n):
    """Return room for n rows."""
    return State(np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n, dtype=np.int64))


@njit(cache=True, nogil=True, error_model="numpy")
def sign_of(response, i):
    """Return what the predictor of a row is multiplied by to be its margin."""
    return response.y[i] if response.loss == LOGISTIC else 1.0


@njit(cache=True, nogil=True, error_model="numpy")
def fill(response, margins, state):
    """Fill falls, others and losses of a state at its margins, each within 8 roundings of what makes it up."""
    if response.loss == LOGISTIC:
        log_losses(margins, state.falls, state.others, state.losses, state.work, state.bits)
    else:
        half_deviances(margins, response.y, state.falls, state.others, state.losses)


@njit(cache=True, nogil=True, error_model="numpy")
def curvatures(response, state, out):
    """Fill `v l''` where a state is."""
    v = response.v
    if response.loss == LOGISTIC:
        for i in range(out.shape[0]):
            out[i] = v[i] * state.falls[i] * state.others[i]
    else:
        for i in range(out.shape[0]):
            out[i] = v[i] * state.others[i]


@njit(cache=True, nogil=True, error_model="numpy")
def roundings(response, state, off, out):
    """Return by how much the weighted sum of losses may be off, row by row; and fill the same of `v l'`, sums included.

    Parameters
    ----------
    response : Response
    state : State
    off : (n,) array
        By which margins may be off, at most 1/2; raised by what the loss adds to it.
    out : (n,) array
    """
    if response.loss == LOGISTIC:
        return log_loss_roundings(response.v, state, off, out)
    return half_deviance_roundings(response.v, response.y, state, off, out)
