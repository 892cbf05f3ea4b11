"""The picture of README.md and docs/index.md: python scripts/release/picture.py docs/_static/cv_error.png"""

from __future__ import annotations

import sys
from pathlib import Path

import sparsecv_mio as sc
from sparsecv_mio.report.figures import panels, save

DATA = Path(__file__).resolve().parents[2] / "instances" / "diabetes64.csv"

record = sc.solve(DATA, target="y", gammas=[0.5], taus="1:12")
print(record)
figure, ((axes,),) = panels(1, 1, (6.4, 3.4))
record.plot_cv_error(axes)
save(figure, sys.argv[1])
