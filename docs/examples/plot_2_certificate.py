"""
Reading a certificate
=====================

The record of a run contains the answer and all data that are needed to check it. This page explains the fields of a
record, stores it, checks it against the data, and shows that a changed record fails the check.
"""

# %%
# This example stops a run early: ten folds of the diabetes data, a method that solves one mixed-integer
# optimisation (MIO) problem at a time, and a budget of five problems.
import tempfile
from dataclasses import replace
from pathlib import Path

from sklearn.datasets import load_diabetes

import sparsecv_mio as sc

data = sc.Dataset.from_frame(load_diabetes(as_frame=True, scaled=False).frame, target="target")
folds = sc.make_folds("10", data, seed=0)
grid = {"gammas": [0.01, 0.1, 1.0], "taus": range(2, 9)}
early = sc.cross_validate(data, folds, **grid, method="algorithm1", mio_budget=5)
print(f"{early.status}: minimum CV error of the grid in [{early.lower:.2f}, {early.upper:.2f}]")
print(f"gap {early.gap:.1e}")

# %%
# No pair of the *whole grid* has a cross-validation (CV) error below `lower`. The CV error of the *reported pair*
# is at most `upper`. `gap` is `(upper - lower) / upper`. The status is `limit`, because the requested gap (1e-4)
# was not reached; the bounds are valid. Without the budget, the gap closes, and the new interval lies inside the
# first one:
record = sc.cross_validate(data, folds, **grid)
print(f"{record.status}: tau = {record.tau}, gamma = {record.gamma:g}, in [{record.lower:.2f}, {record.upper:.2f}]")
assert early.lower <= record.cv_error <= early.upper

# %%
# `table` has an interval for each pair of the grid. The intervals of excluded pairs are wide: it is sufficient that
# their lower bound exceeds the smallest upper bound. `folds_decided` counts the folds whose best subset is proved.
print(" tau  gamma      lower      upper  decided")
for row in record.table[:7]:
    print(f"{row.tau:4d} {row.gamma:6g} {row.lower:10.2f} {row.upper:10.2f} {row.folds_decided:5d}/{row.folds}")

# %%
# The figure shows the run with the budget: bands are certified intervals, hollow dots are estimates.
early.plot_cv_error()

# %%
# The next figure shows the lower bounds of all pairs in both runs. Green pairs are certified to be worse than the
# smallest CV error found; for brown pairs the bound is too low.
early.plot_bounds()
record.plot_bounds()

# %%
# The record is stored, read again, and checked by a program that shares no code with the search. The program makes
# the folds again, fits every fold with its reported support, and computes the errors again. With so few features,
# it also tries all subsets.
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "answer.json"
    record.write_record(file)
    again = sc.read_record(file)
report = sc.verify(again, data)
print("verified: " + "\n          ".join(report.verified))
print("only read: " + ", ".join(report.reread))

# %%
# A changed record fails the check, for example one with a smaller error:
changed = replace(record, cv_error=record.cv_error * 0.97)
for failure in sc.verify(changed, data).failures[:3]:
    print(f"{failure.field}: {failure.message}")
