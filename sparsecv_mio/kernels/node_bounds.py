"""The bounds that close the nodes of compiled trees; to replace a bound, import another function under its name here.

`bound_of_size` bounds every support of one size in a node (`perspective_tree`) and has the parameters of `relax`. It
overwrites its initial point b, which is zero outside of the node, and fills `best_b` and `best_g` on the columns of the
node; the tree uses these for branching, screening and rounding allowances. It returns a dual value of at most `base -
(sum of the k largest best_g^2)` over the free columns, where `base` is the dual value without this sum. It also returns
the primal value and the number of steps (0 if the initial point was sufficient). `remaining_sizes` returns the sizes
for which a node may still contain supports below their cutoffs (`path_tree`).

Roots (`trees/normal_form`), blocks, clusters, restrictions, the leave-one-out tree, wide rows and proofs have separate
bounds. A looser bound gives the same results with more nodes; `tests/unit/kernels/test_perspective_tree.py` and
`test_path_tree.py` contain the numbers of nodes.

The bounds are names, not arguments, because numba does not store a kernel on disk that has another kernel as an
argument or in a closure, so each process would compile the tree again.
"""

from sparsecv_mio.kernels.dropping_costs import remaining_sizes
from sparsecv_mio.kernels.node_relaxation import relax as bound_of_size

__all__ = ["bound_of_size", "remaining_sizes"]
