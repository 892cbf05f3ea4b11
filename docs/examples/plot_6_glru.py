"""
GLRU: leave-one-out errors of a classifier, mostly without training
===================================================================

How many rows does a linear classifier misclassify if each row is held out of the training? The naive method trains
once for each row. GLRU (generalized low-rank update) bounds every held-out prediction from the one fit on all rows.
If both bounds have the same sign, the predicted class of the row is certain. Only the other rows need more work.
"""

# %%
# The breast cancer data have 569 rows, 30 features and two classes. GLRU does not scale columns, so they are
# centred and scaled here. The model has no intercept; with an intercept, every row needs a separate bound, which is
# slower.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from sparsecv_mio.oracles.glru import Logistic, Regularizer, loocv, make_problem

X, label = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
y = np.where(label == 1, 1.0, -1.0)
problem = make_problem(X, y, Logistic(), Regularizer(ridge=0.05))

# %%
# `bracket` has a lower and an upper bound on the number of errors, proved before any further training.
found = loocv(problem)
low, high = found.bracket
print(f"bounds of one fit: between {low} and {high} errors, {found.open.sum()} rows not decided")
print(f"answer: {found.errors} errors of {y.size}, {found.trainings} trainings, guarantee: {found.guarantee}")

# %%
# The naive method trains for every row, and finds the same number of errors.
naive = loocv(problem, bounds=False)
assert naive.errors == found.errors
print(f"time {found.seconds['total']:.3f} s against {naive.seconds['total']:.3f} s for {naive.trainings} trainings")

# %%
# The figure shows certified intervals of held-out predictions near zero. A row is open if its interval contains
# zero.
order = np.argsort(found.lower + found.upper)
fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
colour = np.where(found.open[order], "C3", "C0")
ax.vlines(np.arange(y.size), found.lower[order], found.upper[order], colors=colour, lw=1.5)
ax.axhline(0.0, color="black", lw=0.8)
ax.set_ylim(-3, 3)
ax.set_xlim(100, 400)
ax.set_xlabel("rows, in the order of their predictions")
ax.set_ylabel("left-out prediction, certified interval")
ax.plot([], [], color="C0", label="sign certain")
ax.plot([], [], color="C3", label="open")
fig.legend(loc="outside lower center", ncols=4, frameon=False)
