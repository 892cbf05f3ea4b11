"""
TreeCV: k folds in log2(k) passes
=================================

An incremental learner need not start again for every fold. TreeCV divides the folds into halves: the model for one
half learns all rows of the other half, and so on down to single folds. Cross-validation over k folds takes about
`log2(k)` passes over the data, also for leave-one-out.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np

from sparsecv_mio.data.folds import folds_from_labels
from sparsecv_mio.oracles.treecv import PegasosLearner, RidgeLearner, standard_cv, tree_cv

rng = np.random.default_rng(2)
n, p = 4_000, 20
X = rng.normal(size=(n, p))
y = X @ rng.normal(size=p) + rng.normal(size=n)

# %%
# The order of the rows has no effect on ridge regression: TreeCV equals leave-one-out, up to rounding.
few = folds_from_labels(np.arange(n) % 20)
tree, plain = tree_cv(RidgeLearner(1.0), X, y, few), standard_cv(RidgeLearner(1.0), X, y, few)
print(f"TreeCV   {tree.estimate:.10f}  {tree.updates:,} rows learned")
print(f"standard {plain.estimate:.10f}  {plain.updates:,} rows learned")

# %%
# It has an effect on a linear support vector machine that is trained row by row. The estimate is then as good as
# that of standard cross-validation, but not the same number.
label = np.sign(y)
for k in (10, 100, n):
    folds = folds_from_labels(np.arange(n) * k // n)
    found = tree_cv(PegasosLearner(p, lam=1e-4), X, label, folds, shuffle_seed=1)
    print(f"k = {k:5d}: {100 * found.estimate:.2f}% wrong, every row learned {found.updates / n:.1f} times")

# %%
# The figure shows the number of learned rows by the number of folds, in multiples of the rows of the table.
counts = [2, 5, 10, 30, 100, 300, 1000, 4000]
tree_rows = []
for k in counts:
    folds = folds_from_labels(np.arange(n) * k // n)
    tree_rows.append(tree_cv(PegasosLearner(p, lam=1e-4), X, label, folds).updates / n)
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.loglog(counts, tree_rows, marker="o", label="TreeCV")
ax.loglog(counts, [k - 1 for k in counts], "k:", label="one training per fold")
ax.set_xlabel("folds")
ax.set_ylabel("rows learned / rows")
fig.legend(loc="outside lower center", ncols=4, frameon=False)
