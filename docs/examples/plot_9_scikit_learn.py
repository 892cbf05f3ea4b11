"""
Beside LassoCV, in a pipeline
=============================

`BestSubsetRidgeCV` is an estimator of scikit-learn. On data with strongly correlated columns it needs fewer of them
than the lasso, and it proves its choice.
"""

# %%
# 200 rows, 20 columns; neighbours have the correlation 0.8, and the target depends on five of them.
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
# Both choose by the same ten folds.
folds = KFold(10, shuffle=True, random_state=0)
ours = sc.BestSubsetRidgeCV(taus=range(1, 11), gammas=[0.001, 0.01, 0.1, 1.0], cv=folds).fit(X, y)
lasso = make_pipeline(StandardScaler(), LassoCV(cv=folds)).fit(X, y)
print(f"ours : {ours.status_}, {ours.support_.sum()} columns, CV error in [{ours.lower_:.4f}, {ours.upper_:.4f}]")
print(f"lasso: {np.count_nonzero(lasso[-1].coef_)} columns, CV error {lasso[-1].mse_path_.mean(axis=1).min():.4f}")

# %%
# The error of the whole procedure, choice included, on rows that neither choice has seen.
outer = KFold(5, shuffle=True, random_state=1)
for name, model in (("ours", ours), ("lasso", lasso)):
    scores = cross_val_score(model, X, y, cv=outer, scoring="neg_mean_squared_error")
    print(f"{name:>5}: mean squared error {-scores.mean():.4f}")

# %%
# The coefficients beside the true ones.
fig, ax = plt.subplots(figsize=(8, 4))
scaled = lasso[-1].coef_ / lasso[0].scale_
for shift, (name, coefficients) in zip(
    (-0.25, 0.0, 0.25), (("truth", truth), ("ours", ours.coef_), ("lasso", scaled)), strict=True
):
    ax.bar(np.arange(p) + shift, coefficients, width=0.25, label=name)
ax.set_xlabel("column")
ax.set_ylabel("coefficient")
ax.set_xticks(range(p))
ax.legend()
fig.tight_layout()
