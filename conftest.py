"""Settings of every test process, of the suite and of the examples in docstrings."""

from __future__ import annotations

import os
from importlib.util import find_spec

os.environ["COLUMNS"] = "200"  # of what is printed into a pipe; the terminal of whoever runs the tests does not count

# A module that loads a modelling package as it is imported: without it their examples cannot be collected.
_models = ["sparsecv_mio/formulation/models.py"]
collect_ignore = [] if find_spec("pyomo") else _models
