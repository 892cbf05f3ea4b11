"""
Is this biomarker in every good model?
======================================

A laboratory measures six serum values of diabetes patients. A model of the progress of the disease selected one of
them, `s5` (the logarithm of serum triglycerides). Is `s5` necessary, or does a model without it predict equally
well? Neither the selection nor a small p-value in one model answers this question, but a proof over all models can.
"""

# %%
# The file
# --------
# The data are 442 patients with age, sex, body mass index, blood pressure and six serum values; the target is the
# progress of the disease a year later. Some serum values are strongly correlated, so that one selected model says
# little about each of them.
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import sparsecv_mio as sc

home = next(place / "instances" for place in (Path.cwd(), *Path.cwd().parents) if (place / "instances").is_dir())
data = sc.read_dataset(home / "diabetes.csv", "y")
correlations = np.corrcoef(data.X.T)
fig, ax = plt.subplots(figsize=(5.2, 4.2), layout="constrained")
image = ax.imshow(correlations, cmap="RdBu_r", vmin=-1, vmax=1)
ax.set_xticks(range(data.p), data.names, rotation=45)
ax.set_yticks(range(data.p), data.names)
fig.colorbar(image, label="correlation")

# %%
# The best model has it
# ---------------------
# Leave-one-out cross-validation compares all sizes and fifteen ridge weights; the choice is proved.
best = sc.solve(data, folds="loo")
print(best)
print(*best.support)

# %%
# All good models have it
# -----------------------
# For each size from three to eight, the next list contains all sets whose error is at most two per cent above the
# smallest error of this size. The figure shows the share of these sets that contain each feature. A feature with 100%
# in a column is in every good model of this size; this is certain, because each list is proved to be complete.
taus = range(3, 9)
lists = {tau: sc.near_optimal(data, "loo", gamma=best.gamma, taus=tau, within=0.02) for tau in taus}
assert all(near.sizes[0].complete for near in lists.values())
shares = np.array(
    [[np.mean([name in model.support for model in near.models]) for near in lists.values()] for name in data.names]
)
fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
ax.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
for row, column in np.ndindex(*shares.shape):
    value = shares[row, column]
    ax.text(
        column, row, f"{value:.0%}", ha="center", va="center", color="white" if value > 0.5 else "black", fontsize=9
    )
ax.set_yticks(range(data.p), data.names)
ax.set_xticks(range(len(taus)), [f"{tau}\n{len(near.models)} models" for tau, near in lists.items()])
ax.set_xlabel("size, and how many models are within 2% of the best")

# %%
# `s5` and the body mass index are in all sets, blood pressure from four features on, and sex from six. `s1` to `s4`
# replace each other: none of them is necessary, although the best model contains some of them.
#
# The loss of a model without it
# ------------------------------
# The reverse question is: what is the smallest cross-validation (CV) error of all models *without* a feature? For
# each of the ten features, the whole cross-validation is solved again with this feature forced out. The figure
# shows the certified loss: the lower bound without the feature, relative to the upper bound with it.
losses = {}
for name in data.names:
    without = sc.solve(data, folds="loo", force_out=[name])
    assert without.status == "proved"
    losses[name] = 100.0 * (without.lower / best.upper - 1.0)
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
ax.bar(list(losses), list(losses.values()), color=["C1" if name == "s5" else "C0" for name in losses])
ax.axhline(0.0, color="black", lw=0.8)
ax.set_ylabel("CV error without it, % above the best")
print({name: round(loss, 2) for name, loss in losses.items()})

# %%
# Without `s5` the CV error is 4.2% larger. Only the body mass index (13.4%) and the blood pressure (4.9%) have a
# larger loss. (A loss can be slightly below zero: every fold chooses its own subset, and with fewer features to
# choose from it may choose a subset that predicts better.)
#
# Could something else replace it?
# --------------------------------
# Squares and products of the other features could replace `s5`. The search is repeated on all 64 terms, with and
# without the eleven terms that contain `s5`, each with a gap of 2%:
wide = sc.read_dataset(home / "diabetes64.csv", "y")
question = {"gammas": [0.5], "taus": "1:12", "gap": 0.02}
with_it = sc.solve(wide, **question)
without_it = sc.solve(wide, force_out=[name for name in wide.names if "s5" in name], **question)
print(with_it, without_it, sep="\n")
print(f"certified: at least {without_it.lower / with_it.upper - 1:.1%} larger CV error")

# %%
# The intervals do not overlap: at this ridge weight, no model of at most twelve of the other 53 terms has such a
# small CV error.
#
# The decision
# ------------
# Keep measuring `s5`. One or two of `s1` to `s4` are enough, and the data do not determine which; choose by their
# cost. The result does *not* show that triglycerides cause the disease. Nor does it show that the
# loss exceeds the sampling noise: the difference of the two errors has a standard error over the patients.
from sparsecv_mio.search.api import held_out_predictions  # noqa: E402

plain = sc.solve(data, folds="loo", force_out=["s5"])
squares = [(data.y - held_out_predictions(record, data, "loo")) ** 2 for record in (plain, best)]
difference = squares[0] - squares[1]
print(f"difference {difference.mean():.0f}, standard error {difference.std() / data.n**0.5:.0f}")
