"""
Is my lasso model missing something?
====================================

You have a lasso model, chosen by cross-validation, and a reader asks: why these features? A lasso selects by
shrinking, and a pair of features that matter together, with opposite signs, may be shrunk away both. The best subset
of the same size, proved, says what there was to find; how much it matters is another question, with another answer.
"""

# %%
# The file and the lasso
# ----------------------
# 263 baseball players, 19 numbers of their season and career, and the logarithm of their salary.
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
# The same folds, all sizes, fifteen ridge weights, every best subset proved. The least error of the grid is
# certified: if it were far below the lasso's, the lasso would be missing something that counts.
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
# It is not: the lasso is within 2% of the least error of all these models, a fraction of a standard error. For
# prediction nothing is missing. But look at small sizes: the best subset of four predicts nearly as well as the
# lasso's ten, where a lasso of four is much worse, as it shrinks what it keeps.
four = sc.solve(data, folds=folds, taus=[4])
print(four, *four.support)

# %%
# What it cannot see
# ------------------
# Now the reading of it: which features belong to the salary? All sets of the lasso's size within one per cent of
# the least training objective, proved complete, and in how many of them each feature is.
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
# Six features are in every good model. The lasso has five of them; the sixth, `CWalks` (walks of the career), it
# has not, nor `AtBat` (times at bat this season), which nearly all have. And of what it has, `HmRun`, `CHits` and
# `Errors` are in a quarter of the good models, `Runs` in a tenth: they stand in for something.
#
# What is missing is hidden for a reason: both count *against* the salary, beside features that they go along with.
# Players who hit often are at bat often (correlation 0.96). Without any penalty the best subset of this size takes
# both, with opposite signs, for it is hits *per* time at bat that are paid; a penalty on the sum of coefficients
# makes such a pair dear.
free = sc.best_subsets(data, gammas=0, taus=[size]).path[0]
print(f"best {size} by least squares: {', '.join(free.support)}")
at_bat, hits = (data.X[:, data.names.index(name)] for name in ("AtBat", "Hits"))
print(f"correlation of AtBat and Hits {np.corrcoef(at_bat, hits)[0, 1]:.2f}")
scale = data.X.std(axis=0)
for name in ("AtBat", "Hits", "CRuns", "CWalks"):
    j = data.names.index(name)
    print(f"{name:>7}  best subset {free.coefficients.get(name, 0.0) * scale[j]:+.3f}   lasso {lasso.coef_[j]:+.3f}")

# %%
# How much is the pair worth? Take it away from the best subset: the residual sum of squares of the best ten without
# `AtBat`, and that of the lasso's ten refitted, both beside the proved least one.
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
# Keep the lasso for predictions. Do not read its list as "the" features: it lacks one that every good model has,
# and others of it are interchangeable. For a model to be read take the best subset of four, which predicts nearly
# as well, and say what is certified: no model of any size on the grid has a smaller CV error than the bound below.
print(f"least CV error {record.lower:.5f} to {record.upper:.5f}, of four features {four.cv_error:.5f}")
