"""
Which five measurements predict the price, and is the answer stable?
====================================================================

A car dealer wants to price cars by a form with five boxes. Which five of forty measurements of a car belong on the
form? And would other cars have led to another form?
"""

# %%
# The file
# --------
# The file `instances/topgear.csv` describes 242 cars of the BBC's Top Gear site: size, engine, equipment, verdict
# and price. Prices range from 8,000 to 1,140,000 pounds, so that squared errors in pounds would depend on the three
# most expensive cars only. The logarithm of the price gives the same weight to relative errors of all cars. One car
# has a fuel consumption of 470 miles per gallon, because it is mostly electric; this car is omitted.
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import sparsecv_mio as sc

home = next(place / "instances" for place in (Path.cwd(), *Path.cwd().parents) if (place / "instances").is_dir())
frame = pd.read_csv(home / "topgear.csv")
print(frame[["Price", "MPG", "BHP", "Width"]].describe().loc[["min", "50%", "max"]])
frame = frame[frame.MPG < 400].reset_index(drop=True)
frame["log10_price"] = np.log10(frame.pop("Price"))
data = sc.Dataset.from_frame(frame, "log10_price")
print(f"{data.n} cars, {data.p} features")

# %%
# Five of forty
# -------------
# There are 658,008 sets of five measurements. For each of ten folds, the best set is chosen on the other nine folds
# and predicts the held-out fold. The ridge weight is chosen from fifteen values. The answer is proved: no ridge
# weight of the grid has a smaller cross-validation (CV) error.
five = sc.solve(data, taus=[5])
print(five)
for name, coefficient in five.coefficients.items():
    print(f"{name:>10} {coefficient:10.6f}")
print(f"typical error: a factor of {10**five.cv_error**0.5:.2f}")

# %%
# Would four be enough, or are ten better? One run compares all sizes. Bars are standard errors, the star is the
# minimum CV error, and shaded bands are certified intervals of sizes that were excluded by their bounds.
sizes = sc.solve(data, taus="1:10")
print(sizes)
sizes.plot_cv_error()

# %%
# Five boxes are enough: their CV error is within one standard error of the minimum.
table = sizes.to_frame()
least = table.loc[table.groupby("tau").cv_error.idxmin()].set_index("tau")
for tau in (3, 5, 10):
    print(f"{tau:2d} features: a factor of {10 ** least.cv_error[tau] ** 0.5:.3f}")

# %%
# Is it stable?
# -------------
# First, the figure shows how many of the ten fold models, each fitted without a tenth of the cars, choose each
# measurement.
five.plot_features()

# %%
# Second, the next list contains all sets of five measurements whose CV error is at most five per cent above the
# smallest one. Here all folds use the same set. The list is proved to be complete.
near = sc.near_optimal(data, "10", gamma=five.gamma, taus=5, within=0.05)
always = near.sizes[0].always
print(f"{len(near.models)} sets, none missing: {near.sizes[0].complete}; in all of them: {', '.join(always)}")
used = [name for name in data.names if any(name in model.support for model in near.models)]
used.sort(key=lambda name: -sum(name in model.support for model in near.models))
fig, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
for row, name in enumerate(used):
    holders = [at for at, model in enumerate(near.models) if name in model.support]
    ax.plot(holders, [row] * len(holders), "o", color="C0", markersize=9)
ax.set_yticks(range(len(used)), used)
ax.set_xticks(range(len(near.models)), [f"{model.value / near.models[0].value - 1:+.1%}" for model in near.models])
ax.set_xlabel("CV error above the best set")
ax.invert_yaxis()
ax.grid(alpha=0.3)

# %%
# The answer is partly stable. Cylinders, torque and width are in all sets of the list, and top speed is in all but
# one. The fifth box hardly matters: driven wheels, gearbox, verdict and fuel predict nearly equally well. (The best
# set on all cars contains `BHP`, which is in only one set of the list: it fits all rows best, but other
# measurements predict held-out rows better.)
#
# Third, how much larger is the smallest CV error of all sets without one of these three measurements? This is
# proved too.
for name in always:
    without = sc.near_optimal(data, "10", gamma=five.gamma, taus=5, within=0.01, force_out=[name]).models[0]
    print(f"without {name:>9}: {without.value / near.models[0].value - 1:+.1%}   {', '.join(without.support)}")

# %%
# No other measurement replaces the cylinders. Without the width, the CV error is five per cent larger.

# %%
# The decision
# ------------
# The form has cylinders, width, torque, top speed and the driven wheels: the set with the smallest CV error if all
# folds use the same set. This model is fitted once more, and each predicted price gets an interval from the errors
# on held-out cars.
form = ["Cylinders", "Width", "Torque", "TopSpeed", "DriveWheel_Front"]
model = sc.solve(sc.Dataset.from_frame(frame[[*form, "log10_price"]], "log10_price"), taus=[5])
small = sc.Dataset.from_frame(frame[[*form, "log10_price"]], "log10_price")
cars = frame.sample(4, random_state=1)
for middle, (low, high), true in zip(
    model.predict(cars[form]), model.predict_interval(cars[form], 0.9, small), cars.log10_price, strict=True
):
    print(f"predicted {10**middle:8,.0f}  (90%: {10**low:8,.0f} to {10**high:8,.0f})   actual {10**true:8,.0f}")

# %%
# `model.write_record("form.json")` stores the record. If the table is stored as `cars.csv` (`frame.to_csv`),
# `sparsecv verify form.json cars.csv` recomputes the record. In Python:
assert sc.verify(model, small).ok
