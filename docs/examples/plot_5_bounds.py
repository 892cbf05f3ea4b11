"""
Bounds without MIOs
===================

Convex relaxations bound the cross-validation (CV) error of every pair (`tau`, `gamma`) without solving a
mixed-integer optimisation (MIO) problem. With large ridge weights the lower and upper bounds meet. With small ridge
weights the intervals are wide, and the search must narrow them.
"""

# %%
# :func:`sparsecv_mio.bounds.cv_error.compute_bounds` requires standardised data. `sparsecv bounds` does the same
# for a file.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import sparsecv_mio as sc
from sparsecv_mio.bounds.cv_error import compute_bounds
from sparsecv_mio.data.standard import standardize

data = sc.Dataset.from_frame(load_diabetes(as_frame=True, scaled=False).frame, target="target")
folds = sc.make_folds("10", data, seed=0)
gammas, taus = [0.01, 0.1, 1.0], list(range(1, 11))
table = compute_bounds(standardize(data), folds, gammas, taus)
least = table.minimum()
print(f"minimum CV error of the grid in [{least.lower:.1f}, {least.upper:.1f}]")
for g, gamma in enumerate(gammas):
    decided = sum(table.decided(g, t) for t in range(len(taus)))
    print(f"gamma {gamma:5g}: {decided} of {folds.k * len(taus)} best subsets decided by screening alone")

# %%
# The exact CV errors, computed by branch-and-bound, lie inside all intervals.
record = sc.cross_validate(data, folds, gammas=gammas, taus=taus, gap=0.0)
exact = {(row.gamma, row.tau): row.cv_error for row in record.table}
fig, axes = plt.subplots(1, 3, figsize=(11, 4.3), sharey=True, layout="constrained")
for g, (gamma, ax) in enumerate(zip(gammas, axes, strict=True)):
    ends = [table.cv_interval(g, t) for t in range(len(taus))]
    truth = np.array([exact[gamma, tau] for tau in taus])
    assert all(end.lower <= value * (1 + 1e-9) for end, value in zip(ends, truth, strict=True))
    assert all(value <= end.upper * (1 + 1e-9) for end, value in zip(ends, truth, strict=True))
    low, high = np.array([end.lower for end in ends]), np.array([end.upper for end in ends])
    ax.bar(taus, high - low, bottom=low, width=0.9, alpha=0.3, label="certified bounds")
    ax.plot(taus, [table.cv_estimate(g, t) for t in range(len(taus))], "C1_", ms=12, label="estimate of the relaxation")
    ax.plot(taus, truth, "k.", label="exact")
    ax.set_title(f"gamma = {gamma:g}")
    ax.set_xlabel("number of features, tau")
axes[0].set_ylabel("CV error")
axes[0].set_ylim(2500, 5000)
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
