"""
Compared with LassoCV and abess
===============================

`BestSubsetRidgeCV` is an estimator for scikit-learn. On data with strongly correlated columns it selects fewer
columns than the lasso, and proves its choice. The last section compares the errors of the whole procedures on three
real data sets.
"""

# %%
# The data have 200 rows and 20 columns. Neighbouring columns have the correlation 0.8, and the target depends on
# five columns.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.linear_model import LassoCV
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import sparsecv_mio as sc

rng = np.random.default_rng(0)
p = 20
correlation = 0.8 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
X = rng.multivariate_normal(np.zeros(p), correlation, size=200)
truth = np.zeros(p)
truth[[2, 6, 10, 14, 18]] = [1.0, -1.0, 1.5, -1.5, 1.0]
y = X @ truth + rng.normal(size=200)

# %%
# Both estimators choose by the same ten folds.
folds = KFold(10, shuffle=True, random_state=0)
ours = sc.BestSubsetRidgeCV(taus=range(1, 11), gammas=[0.001, 0.01, 0.1, 1.0], cv=folds).fit(X, y)
lasso = make_pipeline(StandardScaler(), LassoCV(cv=folds)).fit(X, y)
print(f"ours : {ours.status_}, {ours.support_.sum()} columns, CV error in [{ours.lower_:.4f}, {ours.upper_:.4f}]")
print(f"lasso: {np.count_nonzero(lasso[-1].coef_)} columns, CV error {lasso[-1].mse_path_.mean(axis=1).min():.4f}")

# %%
# These are the errors of the whole procedures, including the choice, on rows that were used for neither choice.
outer = KFold(5, shuffle=True, random_state=1)
for name, model in (("ours", ours), ("lasso", lasso)):
    scores = cross_val_score(model, X, y, cv=outer, scoring="neg_mean_squared_error")
    print(f"{name:>5}: mean squared error {-scores.mean():.4f}")

# %%
# The figure compares the coefficients with the true ones.
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
scaled = lasso[-1].coef_ / lasso[0].scale_
for shift, (name, coefficients) in zip(
    (-0.25, 0.0, 0.25), (("truth", truth), ("ours", ours.coef_), ("lasso", scaled)), strict=True
):
    ax.bar(np.arange(p) + shift, coefficients, width=0.25, label=name)
ax.set_xlabel("column")
ax.set_ylabel("coefficient")
ax.set_xticks(range(p))
fig.legend(loc="outside lower center", ncols=4, frameon=False)

# %%
# On three real data sets, each procedure chooses a model in each of five outer training sets. The figures show its
# mean squared error on the held-out rows, relative to least squares on all columns, and the number of columns of
# its model on all rows. Nearly all columns of these data are relevant, so the gain is models with fewer columns,
# not smaller errors. abess is shown if it is installed.
from importlib.util import find_spec  # noqa: E402
from pathlib import Path  # noqa: E402

from sklearn.base import clone  # noqa: E402
from sklearn.linear_model import LinearRegression  # noqa: E402

home = next(place / "instances" for place in (Path.cwd(), *Path.cwd().parents) if (place / "instances").is_dir())
models = {
    "ours": sc.BestSubsetRidgeCV(n_gammas=5),
    "ours, one SE": sc.BestSubsetRidgeCV(n_gammas=5, one_se=True),
    "LassoCV": make_pipeline(StandardScaler(), LassoCV(cv=10)),
}
if find_spec("abess"):
    from abess import LinearRegression as Abess

    models["abess"] = make_pipeline(StandardScaler(), Abess(cv=10))
fig, axes = plt.subplots(2, 3, figsize=(10, 5), sharex=True, sharey="row", layout="constrained")
for column, (name, target) in enumerate((("prostate", "lpsa"), ("autompg", "mpg"), ("housing", "medv"))):
    data = sc.read_dataset(home / f"{name}.csv", target)

    def error(model: object, data: sc.Dataset = data) -> float:
        return -cross_val_score(model, data.X, data.y, cv=outer, scoring="neg_mean_squared_error").mean()

    plain = error(LinearRegression())
    for place, (label, model) in enumerate(models.items()):
        found = clone(model).fit(data.X, data.y)
        coefficients = getattr(found, "coef_", None) if hasattr(found, "coef_") else found[-1].coef_
        used, relative = int(np.count_nonzero(coefficients)), error(model) / plain
        axes[0, column].bar(place, relative)
        axes[1, column].bar(place, used)
        print(f"{name:>9} {label:>13}: {used:2} of {data.p} columns, error {relative:.3f} of that of least squares")
    axes[0, column].set_title(name)
    axes[0, column].axhline(1.0, color="black", lw=0.8)
    axes[1, column].set_xticks(range(len(models)), models, rotation=30, ha="right")
axes[0, 0].set_ylabel("error relative to\nleast squares")
axes[1, 0].set_ylabel("columns")
axes[1, 0].yaxis.get_major_locator().set_params(integer=True)
