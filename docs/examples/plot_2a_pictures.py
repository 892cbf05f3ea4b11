"""
Pictures, predictions and a report
==================================

This page shows the figures of `sparsecv plot` one by one, predictions for new rows, held-out predictions for the
rows of the data, and the page that `sparsecv report` writes.
"""

# %%
# The data are house prices of Boston, with 13 measurements of 506 districts. The last 56 rows serve as new rows.
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import sparsecv_mio as sc
from sparsecv_mio.certificate.accuracy import accuracy

home = next(place / "instances" for place in (Path.cwd(), *Path.cwd().parents) if (place / "instances").is_dir())
frame = pd.read_csv(home / "housing.csv").sample(frac=1.0, random_state=0)
data, new = sc.Dataset.from_frame(frame[:450], "medv"), frame[450:]
record = sc.solve(data, one_se=True)
print(record.summary())

# %%
# The first figure shows the cross-validation (CV) error of every number of features, at its best ridge weight, with
# certified intervals and standard errors. The second figure shows the CV errors of all pairs. The star is the
# choice of the one-standard-error rule, the diamond the minimum CV error.
record.plot_cv_error()
record.plot_grid()

# %%
# This figure shows the lower bound of each pair: green pairs are worse than the minimum CV error by at least the
# printed percentage.
record.plot_bounds()

# %%
# The next figures show how many of the ten folds choose each feature, and the coefficients of the best subset of
# every size on all rows, for columns and target of standard deviation 1.
record.plot_features()
record.plot_coefficients(data=data)

# %%
# Each row is predicted by the model that was fitted without it; the CV error is the mean of these squared errors.
# New rows are predicted by the model that was fitted to all rows.
held_out = record.held_out_predictions(data)
print(accuracy(data.y, held_out), np.isclose(np.mean((data.y - held_out) ** 2), record.cv_error))
predicted = record.predict(new)
print(accuracy(new["medv"], predicted))
fig, ax = plt.subplots(figsize=(5, 5), layout="constrained")
ax.plot(held_out, data.y, ".", color="C0", alpha=0.5, label="held-out rows")
ax.plot(predicted, new["medv"], "o", color="C1", markersize=4, label="new rows")
ax.axline((20, 20), slope=1, color="black", lw=0.8)
ax.set_xlabel("predicted")
ax.set_ylabel("observed")
fig.legend(loc="outside lower center", ncols=2, frameon=False)

# %%
# The report has all of this on one page that needs no other file: `sparsecv report answer.json --data housing.csv`,
# or
with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "answer.html"
    record.write_report(page, data)
    print(f"{page.stat().st_size / 1000:.0f} kB of HTML, {page.read_text().count('<svg')} pictures")
