"""
Is my lasso model missing something?
====================================

You have a lasso model, chosen by cross-validation, and a reader asks why it has these features. A lasso selects
features by shrinking coefficients. It may therefore omit two features that improve the model only together, with
opposite signs. The proved best subset of the same size shows which features the lasso missed; a second question is
how much they improve the prediction.
"""

# %%
# The file and the lasso
# ----------------------
# The data are 263 baseball players with 19 numbers on their season and career; the target is the logarithm of the
# salary.
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV, lasso_path
from sklearn.preprocessing import StandardScaler

import sparsecv_mio as sc

home = next(place / "instances" for place in (Path.cwd(), *Path.cwd().parents) if (place / "instances").is_dir())
data = sc.read_dataset(home / "hitters.csv", "log10_salary")
folds = sc.make_folds("10", data)
splits = [(folds.train_rows(fold), folds.scored_rows(fold)) for fold in range(folds.k)]
Z = StandardScaler().fit_transform(data.X)
lasso = LassoCV(cv=splits, alphas=100).fit(Z, data.y)
kept = [data.names[j] for j in np.flatnonzero(lasso.coef_)]
print(f"the lasso keeps {len(kept)}: {', '.join(kept)}")
print(f"CV error {lasso.mse_path_.mean(axis=1).min():.5f}")

# %%
# Does it predict as well as any?
# -------------------------------
# The search uses the same folds, all sizes and fifteen ridge weights, and proves every best subset. If the
# certified minimum cross-validation (CV) error were far below the CV error of the lasso, the lasso would miss an
# important feature.
record = sc.solve(data, folds=folds, gap=0)
print(record)
table = record.to_frame()
least = table.loc[table.groupby("tau").cv_error.idxmin()].set_index("tau")
fig, ax = plt.subplots(figsize=(7.5, 4), layout="constrained")
errors = lasso.mse_path_.mean(axis=1)
counts = [np.count_nonzero(b) for b in lasso_path(Z, data.y - data.y.mean(), alphas=lasso.alphas_)[1].T]
ax.errorbar(
    least.index, least.cv_error, yerr=least.standard_error, fmt="o", color="C0", label="best subsets, certified", lw=0.8
)
ax.plot(counts, errors, ".", color="C1", label="lasso, every penalty of its path")
ax.set_xlabel("features")
ax.set_ylabel("CV error, same folds")
ax.set_ylim(0.07, 0.11)
ax.set_xticks(range(1, data.p + 1, 2))
fig.legend(loc="outside lower center", ncols=2, frameon=False)

# %%
# The CV error of the lasso is within 2% of the minimum, a fraction of a standard error. For prediction, no feature
# is missing. At small sizes the methods differ: the best subset of four features predicts nearly as well as the
# lasso with ten. A lasso with four features is much worse, because it shrinks the selected coefficients.
four = sc.solve(data, folds=folds, taus=[4])
print(four, *four.support)

# %%
# Features that the lasso misses
# ------------------------------
# Which features are related to the salary? The next list has all sets of the size of the lasso model whose training
# objective is at most one per cent above the smallest one. The list is proved to be complete. The figure shows the
# share of these sets that contain each feature.
size = len(kept)
near = sc.near_optimal(data, gamma=record.gamma, taus=size, by="objective", within=0.01)
print(f"{len(near.models)} sets of {size}, none missing: {near.sizes[0].complete}")
print(f"in all of them: {', '.join(near.sizes[0].always)}")
share = {name: np.mean([name in model.support for model in near.models]) for name in data.names}
order = sorted(share, key=lambda name: -share[name])
fig, ax = plt.subplots(figsize=(7.5, 4.6), layout="constrained")
ax.barh(order, [share[name] for name in order], color=["C1" if name in kept else "C0" for name in order])
ax.invert_yaxis()
ax.set_xlabel("share of the good models that have it (orange: the lasso has it)")

# %%
# Six features are in every good model. The lasso has five of them. It lacks the sixth, `CWalks` (walks in the
# career), and also `AtBat` (times at bat this season), which nearly all good models have. Four features of the
# lasso are rare in good models: `HmRun`, `CHits` and `Errors` are in a quarter of them, `Runs` in a tenth.
#
# The lasso misses both for the same reason: they have negative coefficients next to correlated features with
# positive ones. Players with many hits are often at bat (correlation 0.96). Without a penalty, the best subset of
# this size contains both `Hits` and `AtBat`, with opposite signs, because hits *per* time at bat are paid. The
# lasso penalises the sum of absolute coefficients, which is large for such a pair.
free = sc.best_subsets(data, gammas=0, taus=[size]).path[0]
print(f"best {size} by least squares: {', '.join(free.support)}")
at_bat, hits = (data.X[:, data.names.index(name)] for name in ("AtBat", "Hits"))
print(f"correlation of AtBat and Hits {np.corrcoef(at_bat, hits)[0, 1]:.2f}")
scale = data.X.std(axis=0)
for name in ("AtBat", "Hits", "CRuns", "CWalks"):
    j = data.names.index(name)
    print(f"{name:>7}  best subset {free.coefficients.get(name, 0.0) * scale[j]:+.3f}   lasso {lasso.coef_[j]:+.3f}")

# %%
# How much does this pair improve the fit? The table compares three residual sums of squares: of the proved best
# subset, of the best subset without `AtBat`, and of the ten features of the lasso, refitted by least squares.
without = sc.best_subsets(data, gammas=0, taus=[size], force_out=["AtBat"]).path[0]


def residual(support):
    rows = np.column_stack([np.ones(data.n), data.X[:, [data.names.index(name) for name in support]]])
    left = data.y - rows @ np.linalg.lstsq(rows, data.y, rcond=None)[0]
    return left @ left


for label, support in (("best", free.support), ("best without AtBat", without.support), ("the lasso's", kept)):
    print(f"{label:>19}: {residual(support):.3f}  {residual(support) / residual(free.support) - 1:+.2%}")

# %%
# The decision
# ------------
# Keep the lasso for predictions. Do not interpret its features as "the" relevant ones: it lacks a feature that
# every good model has, and others are interchangeable. To interpret a model, use the best subset of four, which
# predicts nearly as well. State the certified result: no model of any size on the grid has a CV error below the
# bound that is printed here.
print(f"minimum CV error {record.lower:.5f} to {record.upper:.5f}, of four features {four.cv_error:.5f}")
