"""
First solve
===========

Choose the number of features and the ridge weight for the diabetes data by leave-one-out cross-validation, and prove
the choice.

For every pair (`tau`, `gamma`) of a grid, leave-one-out fits one model per row: the best of *all* subsets of `tau`
features, by ridge regression with weight `gamma`, on all other rows. The pair whose models predict their left-out rows
best is the answer.
"""

# %%
# The data: 442 patients, ten measurements, the progress of their disease a year later. A data frame becomes a
# `Dataset`, which checks that every cell is a finite number; :func:`sparsecv_mio.read_dataset` does the same for a
# file.
import numpy as np
from sklearn.datasets import load_diabetes

import sparsecv_mio as sc

frame = load_diabetes(as_frame=True, scaled=False).frame
data = sc.Dataset.from_frame(frame, target="target")
folds = sc.make_folds("loo", data)
print(f"{data.n} rows, {data.p} features, {folds.k} folds")

# %%
# Ten support sizes and seven ridge weights. A gap of 0 asks for every pair of the grid to be decided, so that the
# whole curve can be drawn; the default, 1e-4, only decides what the choice needs and is faster where that is hard.
gammas = np.geomspace(1e-3, 1, 7).tolist()
record = sc.cross_validate(data, folds, gammas=gammas, taus=range(1, 11), gap=0.0)
print(f"{record.status}: tau = {record.tau}, gamma = {record.gamma:g}")
print(f"CV error {record.cv_error:.3f}, proved to be between {record.lower:.3f} and {record.upper:.3f}")
print(f"{folds.k * len(record.table)} best-subset problems in {record.work.seconds:.2f} s")

# %%
# The model at that pair, fitted on all rows, in the units of the data.
for name, coefficient in record.coefficients.items():
    print(f"{name:>5} {coefficient:10.4f}")
print(f"      {record.intercept:10.4f}  (intercept)")

# %%
# The CV error of every pair is in `record.table`, and in a picture. Fewer features predict nearly as well: three of
# them come within one standard error of the best. The dots are exact here; the bars are standard errors over the folds.
record.plot_cv_error()

# %%
# Every pair of the grid, with the ridge weight upwards:
record.plot_grid()
