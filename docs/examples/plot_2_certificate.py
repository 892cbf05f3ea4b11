"""
Reading a certificate
=====================

The record of a run holds the answer and what is needed to check it. This page reads its fields, stores it, checks it
against the data, and shows what happens to a record that somebody has changed.
"""

# %%
# A run that is cut off early is more instructive than one that ends: ten folds of the diabetes data, one search method
# that solves one mixed-integer problem (MIO) at a time, and a budget of five of them.
import tempfile
from dataclasses import replace
from pathlib import Path

from sklearn.datasets import load_diabetes

import sparsecv_mio as sc

data = sc.Dataset.from_frame(load_diabetes(as_frame=True, scaled=False).frame, target="target")
folds = sc.make_folds("10", data, seed=0)
grid = {"gammas": [0.01, 0.1, 1.0], "taus": range(2, 9)}
early = sc.cross_validate(data, folds, **grid, method="algorithm1", mio_budget=5)
print(f"{early.status}: the least CV error of the grid is in [{early.lower:.2f}, {early.upper:.2f}]")
print(f"gap {early.gap:.1e}")

# %%
# `lower` holds for the *whole grid*: no pair has a smaller CV error. `upper` holds for the *reported pair*: its CV
# error is at most that. `gap` is `(upper - lower) / upper`. The status is `limit`, since the gap asked for (1e-4) was
# not reached; the bounds are valid all the same. Without the budget the gap closes, inside the interval of before:
record = sc.cross_validate(data, folds, **grid)
print(f"{record.status}: tau = {record.tau}, gamma = {record.gamma:g}, in [{record.lower:.2f}, {record.upper:.2f}]")
assert early.lower <= record.cv_error <= early.upper

# %%
# Each pair of the grid has its own interval in `table`. Those of pairs that cannot win are left wide: it is enough to
# know that their lower end lies above the best upper end. `folds_decided` counts the folds whose best subset is known
# beyond doubt.
print(" tau  gamma      lower      upper  decided")
for row in record.table[:7]:
    print(f"{row.tau:4d} {row.gamma:6g} {row.lower:10.2f} {row.upper:10.2f} {row.folds_decided:5d}/{row.folds}")

# %%
# The run that was cut off: bands are certified intervals, hollow dots are estimates.
early.plot_cv_error()

# %%
# What is proved of each pair, by the run that was cut off and by the other one: green pairs are worse than the least CV
# error that was found, of brown ones the bound is too low to say so.
early.plot_bounds()
record.plot_bounds()

# %%
# Stored and read back, the record is checked by a program that shares no code with the search: folds are rebuilt, every
# fold is fitted again at its reported support, errors are summed anew, and with so few features every subset is tried.
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "answer.json"
    record.write_record(file)
    again = sc.read_record(file)
report = sc.verify(again, data)
print("verified: " + "\n          ".join(report.verified))
print("only read: " + ", ".join(report.reread))

# %%
# A record that was changed does not pass. Somebody may like a smaller error:
changed = replace(record, cv_error=record.cv_error * 0.97)
for failure in sc.verify(changed, data).failures[:3]:
    print(f"{failure.field}: {failure.message}")
