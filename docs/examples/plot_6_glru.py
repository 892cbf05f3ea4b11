"""
GLRU: leave-one-out errors of a classifier, mostly without training
===================================================================

How many rows does a linear classifier get wrong when each is left out of its training? The naive way trains once per
row. GLRU (generalized low-rank update) bounds every left-out prediction from the one fit on all rows; where the bound
has one sign, the answer for that row is certain. Only the others need more work.
"""

# %%
# Breast cancer data: 569 rows, 30 features, two classes. GLRU uses columns as they are, so they are centred and scaled
# here; no intercept is asked for (with one, every row needs a bound of its own, and that is slower).
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer

from sparsecv_mio.oracles.glru import Logistic, Regularizer, loocv, make_problem

X, label = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
y = np.where(label == 1, 1.0, -1.0)
problem = make_problem(X, y, Logistic(), Regularizer(ridge=0.05))

# %%
# `bracket` is what the bounds prove before anything is trained again: the number of errors lies between its ends.
found = loocv(problem)
low, high = found.bracket
print(f"from one fit alone: between {low} and {high} errors, {found.open.sum()} rows open")
print(f"answer: {found.errors} errors of {y.size}, {found.trainings} trainings, guarantee: {found.guarantee}")

# %%
# The naive way trains for every row, and counts the same.
naive = loocv(problem, bounds=False)
assert naive.errors == found.errors
print(f"time {found.seconds['total']:.3f} s against {naive.seconds['total']:.3f} s for {naive.trainings} trainings")

# %%
# Certified intervals of the left-out predictions, near zero. A row is open where its interval crosses zero.
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
