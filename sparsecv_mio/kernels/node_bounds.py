"""Which bound closes the nodes of which compiled tree: a name here stands for one, to import another replaces it.

`bound_of_size` bounds every support of one size in a node (`perspective_tree`): it is called as `relax` is. It
overwrites its start b, which is zero outside of the node, and fills `best_b` and `best_g` on the columns of the node:
the tree branches, screens and allows for rounding by them. It returns a dual value, at most `base - (sum of the k
largest best_g^2)` over the free columns, base all of D but that sum, the primal value, and the steps (0: the start was
enough). `sizes_left` says of which sizes a node may still hold supports below their bars (`path_tree`).

Roots (`trees/normal_form`), blocks, clusters, restrictions, alive folds, wide rows and proofs have bounds of their own.
A bound that is looser gives the same answers by more nodes; `tests/unit/kernels/test_perspective_tree.py` and
`test_path_tree.py` hold how many.

They are names, not arguments: numba stores on disk neither a kernel that closes over another one nor one that is called
with it, so that each process would compile the tree again.
"""

from sparsecv_mio.kernels.dropping_costs import sizes_left
from sparsecv_mio.kernels.node_relaxation import relax as bound_of_size

__all__ = ["bound_of_size", "sizes_left"]
