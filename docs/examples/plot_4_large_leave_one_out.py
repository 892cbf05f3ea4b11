"""
Leave-one-out on a large table
==============================

Leave-one-out on 200,000 rows needs 200,000 models for each pair of the grid, each the best of all subsets. It takes
only a few times as long as one fit on all rows. One branch-and-bound tree on all rows lists the subsets that may be
the best in *any* fold; leave-one-out errors in closed form then determine the best subset of each fold.
"""

# %%
# The table has 200,000 rows and 20 features; the target depends on five of them.
import time

import matplotlib.pyplot as plt
import numpy as np

import sparsecv_mio as sc

rng = np.random.default_rng(0)
n, p = 200_000, 20
X = rng.normal(size=(n, p)) + 0.5 * rng.normal(size=(n, 1))
y = X[:, :5] @ [2.0, -1.5, 1.0, 0.5, 0.25] + 3.0 * rng.normal(size=n)
data = sc.Dataset.from_arrays(X, y)
folds = sc.make_folds("loo", data)

# %%
# For comparison, one best-subset path on all rows is computed first. It also loads the compiled code.
taus, gammas = range(1, 11), [0.01]
sc.best_subsets(data, gammas=gammas, taus=taus)
began = time.perf_counter()
path = sc.best_subsets(data, gammas=gammas, taus=taus)
once = time.perf_counter() - began
print(f"best subsets of {len(path.path)} sizes on all rows: {once:.2f} s")

# %%
# Leave-one-out solves two million best-subset problems.
began = time.perf_counter()
record = sc.cross_validate(data, folds, gammas=gammas, taus=taus, gap=0.0, one_se=True)
seconds = time.perf_counter() - began
least = record.least or record
print(f"{record.status}: tau = {least.tau}, minimum CV error in [{least.lower:.6f}, {least.upper:.6f}]")
print(f"{folds.k * len(taus):,} problems in {seconds:.2f} s, {seconds / once:.1f} times one path on all rows")

# %%
# The pair with the minimum cross-validation (CV) error has a few features too many; the difference of the CV errors
# is far below the standard error. The one-standard-error rule takes the smallest model within one standard error:
# the five relevant features.
print(f"standard error {record.one_se.standard_error:.4f}: tau = {record.tau}, {', '.join(record.support)}")

# %%
# The figure shows the CV error by number of features. The variance of the noise is 9.
sizes, errors = [row.tau for row in record.table], [row.cv_error for row in record.table]
assert all(row.folds_decided == row.folds for row in record.table)
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.plot(sizes, errors, "o", label="leave-one-out error")
ax.axhline(least.cv_error + record.one_se.standard_error, color="C7", lw=0.8, label="minimum + one standard error")
ax.plot(record.tau, record.cv_error, "k*", ms=14, label="the smallest model")
ax.set_xlabel("number of features, tau")
ax.set_ylabel("CV error")
fig.legend(loc="outside lower center", ncols=4, frameon=False)
