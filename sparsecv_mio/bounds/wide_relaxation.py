"""The relaxation of one fold on its rows, warm from size to size."""

from __future__ import annotations

import numpy as np

from sparsecv_mio.arrays import FloatArray, IntArray
from sparsecv_mio.bounds.wide_rows import CAPACITY, WideRows
from sparsecv_mio.kernels.dense import gershgorin
from sparsecv_mio.kernels.forms import Form, Node, Stop
from sparsecv_mio.kernels.perspective import relax
from sparsecv_mio.kernels.relaxation_rows import Wide, WorkingSet, relax_rows

MAX_STEPS = 300
ACCURACY = 1e-4  # relative
SPLIT_TRIES = 4  # columns
ROOM = 4, 80  # columns of a working set for each of a support's, and beside them: what two rounds may take


class WideRelaxation:
    """Points of the relaxation of all rows given.

    Parameters
    ----------
    rows : WideRows

    Attributes
    ----------
    b, g : (q,) arrays
        The last point and its slope `X'(y - X b)`.
    columns : WorkingColumns
    """

    def __init__(self, rows: WideRows) -> None:
        self.rows = rows
        self.columns = WorkingColumns(rows.q)
        self.b, self.g = np.zeros(rows.q), np.zeros(rows.q)

    def solve(self, tau: int, accuracy: float) -> tuple[float, float]:
        """Move to the solution of a size; dual and primal value, rounding not yet taken off."""
        return self.solve_on(self.rows.training, self.columns, tau, accuracy)

    def solve_on(self, rows: Wide, columns: WorkingColumns, tau: int, accuracy: float) -> tuple[float, float]:
        """Move to the solution of a size for other rows.

        Parameters
        ----------
        rows : Wide
        columns : WorkingColumns
            Of these rows.
        tau : int
        accuracy : float
            Absolute.

        Returns
        -------
        dual, primal : float
        """
        columns.make_room(tau)
        shift = np.zeros(len(self.b))
        dual, primal = relax_rows(rows, shift, tau, accuracy, MAX_STEPS, columns.arrays, self.b, self.g)
        return float(dual), float(primal)

    def split(self, tau: int, survivors: IntArray) -> float:
        """Bound f by one disjunction: the lesser of the relaxations with and without a column, for the best column.

        Rounding is not yet taken off. O(SPLIT_TRIES) relaxations on the survivors.
        """
        rows, b = self.rows, self.b[survivors]
        A, m = rows.Xt[survivors], len(survivors)
        gram, work = A @ A.T, np.empty((3, m))
        form = Form(gram, rows.c[survivors], rows.yy, min(gershgorin(gram), rows.largest))
        z = np.divide(b, self.g[survivors], out=np.zeros(m), where=self.g[survivors] != 0.0)
        z[z > 0.999] = 0.0
        found = -np.inf
        for pick in np.argsort(-z)[:SPLIT_TRIES]:
            rest = np.delete(np.arange(m), pick)
            values = []
            for inside in (np.zeros(0, dtype=np.int64), np.array([pick])):
                start = b.copy()
                start[pick] *= len(inside)
                node = Node(inside, len(inside), rest, m - 1, tau - len(inside))
                dual, _, _ = relax(form, node, Stop(2.0 * rows.yy, ACCURACY, MAX_STEPS), start, *work)
                values.append(float(dual))
            found = max(found, min(values))
        return found


class WorkingColumns:
    """Columns that a relaxation on rows solves for, and their Gram matrix."""

    def __init__(self, q: int) -> None:
        capacity = min(q, CAPACITY)
        chosen, inside = np.zeros(capacity, dtype=np.int64), np.zeros(q, dtype=np.bool_)
        self.arrays = WorkingSet(chosen, inside, np.zeros(1, dtype=np.int64), np.empty((capacity, capacity)))

    def make_room(self, k: int) -> None:
        """Hold at least what a relaxation of size k may take in two of its rounds."""
        old = self.arrays
        held, most = len(old.chosen), min(len(old.inside), ROOM[0] * k + ROOM[1])
        if most > held:
            chosen, gram = np.zeros(most, dtype=np.int64), np.empty((most, most))
            chosen[:held], gram[:held, :held] = old.chosen, old.gram
            self.arrays = old._replace(chosen=chosen, gram=gram)

    def take(self, columns: IntArray, Xt: FloatArray) -> None:
        """Start with these columns."""
        chosen, inside, held, gram = self.arrays
        columns = columns[: len(chosen)]
        size = len(columns)
        chosen[:size], inside[columns], held[0] = columns, True, size
        gram[:size, :size] = Xt[columns] @ Xt[columns].T
