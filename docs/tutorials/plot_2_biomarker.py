"""
Is this biomarker in every good model?
======================================

A laboratory measures six serum values of diabetes patients. One of them, `s5` (the logarithm of serum triglycerides),
turned up in a model of the disease's progress. Does the prediction need it, or would a model without it do as well?
"It was selected" does not answer that, nor does a small p-value in one model. A proof over all models does.
"""

# %%
# The file
# --------
# 442 patients, age, sex, body mass index, blood pressure and six serum values; the target is the progress of the
# disease a year later. Serum values are correlated, some strongly, and that is why one chosen model says so little
# about each.
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
# Leave-one-out, all sizes, fifteen ridge weights, proved.
best = sc.solve(data, folds="loo")
print(best)
print(*best.support)

# %%
# So do all good ones
# -------------------
# All sets of three to eight features within two per cent of the least error of their size, and in what share of
# them each feature is. A row of ones is what "in every good model" means; it can be said because each list is
# proved complete.
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
# `s5` is in all of them, with the body mass index; blood pressure from four features on, sex from six. `s1` to `s4`
# stand in for each other: none of them is needed, though some of them are in the best model.
#
# What a model without it loses
# -----------------------------
# The same question asked the other way round: the least CV error of all models *without* a feature. For each of the
# ten the whole cross-validation is solved again with the feature forced out, and both errors are certified. What is
# drawn is the certified loss: the lower bound without it against the upper bound with it.
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
# Leaving `s5` out costs 4.2% of the error, after the body mass index (13.4%) and the blood pressure (4.9%) the
# most. (A loss can be slightly below zero: a fold chooses its own subset, and with one feature fewer to choose from
# it may choose a luckier one.)
#
# Could something else replace it?
# --------------------------------
# Squares and products could carry what `s5` carries. With all 64 of them, once with and once without the eleven in
# which `s5` occurs, to within 2% each:
wide = sc.read_dataset(home / "diabetes64.csv", "y")
question = {"gammas": [0.5], "taus": "1:12", "gap": 0.02}
with_it = sc.solve(wide, **question)
without_it = sc.solve(wide, force_out=[name for name in wide.names if "s5" in name], **question)
print(with_it, without_it, sep="\n")
print(f"certified: at least {without_it.lower / with_it.upper - 1:.1%} more error")

# %%
# The intervals do not overlap: no model of at most twelve of the other 53 terms, at this ridge weight, predicts as
# well.
#
# The decision
# ------------
# Keep measuring `s5`. Of `s1` to `s4` one or two are enough, and the data do not say which: choose by what they
# cost. What this does *not* say is that triglycerides cause anything, nor that the loss is more than the noise of
# other samples: the difference of the two errors has a standard error of its own, over the patients.
from sparsecv_mio.search.api import held_out_predictions  # noqa: E402

plain = sc.solve(data, folds="loo", force_out=["s5"])
squares = [(data.y - held_out_predictions(record, data, "loo")) ** 2 for record in (plain, best)]
difference = squares[0] - squares[1]
print(f"difference {difference.mean():.0f}, standard error {difference.std() / data.n**0.5:.0f}")
