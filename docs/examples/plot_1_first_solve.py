"""
First solve
===========

Choose the number of features and the ridge weight for the diabetes data by leave-one-out cross-validation, and prove
the choice.

For every pair (`tau`, `gamma`) of a grid, leave-one-out fits one model for each row: the best of *all* subsets of
`tau` features, by ridge regression with weight `gamma`, on all other rows. The answer is the pair whose models
predict the held-out rows best.
"""

# %%
# The data are ten measurements of 442 patients; the target is the progress of their disease a year later. A
# `Dataset` is made from a data frame; it checks that every value is a finite number.
# :func:`sparsecv_mio.read_dataset` does the same for a file.
import numpy as np
from sklearn.datasets import load_diabetes

import sparsecv_mio as sc

frame = load_diabetes(as_frame=True, scaled=False).frame
data = sc.Dataset.from_frame(frame, target="target")
folds = sc.make_folds("loo", data)
print(f"{data.n} rows, {data.p} features, {folds.k} folds")

# %%
# The grid has ten sizes and seven ridge weights. With a gap of 0 every pair of the grid is solved, so that the
# whole curve can be drawn. The default gap, 1e-4, solves only the pairs that matter for the choice, and is faster
# for hard problems.
gammas = np.geomspace(1e-3, 1, 7).tolist()
record = sc.cross_validate(data, folds, gammas=gammas, taus=range(1, 11), gap=0.0)
print(f"{record.status}: tau = {record.tau}, gamma = {record.gamma:g}")
print(f"CV error {record.cv_error:.3f}, proved to be between {record.lower:.3f} and {record.upper:.3f}")
print(f"{folds.k * len(record.table)} best-subset problems in {record.work.seconds:.2f} s")

# %%
# The model of this pair is fitted to all rows, with coefficients in the units of the data.
for name, coefficient in record.coefficients.items():
    print(f"{name:>5} {coefficient:10.4f}")
print(f"      {record.intercept:10.4f}  (intercept)")

# %%
# `record.table` has the cross-validation (CV) error of every pair, and the figure shows it. Fewer features predict
# nearly as well: the CV error of three features is within one standard error of the minimum. Dots are exact values
# here; bars are standard errors over the folds.
record.plot_cv_error()

# %%
# This figure shows all pairs of the grid, with the ridge weight on the vertical axis:
record.plot_grid()
