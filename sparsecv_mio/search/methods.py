"""Methods that hand cells to branch-and-bound one by one, by the word that names them."""

from __future__ import annotations

from sparsecv_mio.search.algorithm1 import Algorithm1, OneByOne
from sparsecv_mio.search.grid import GridSearch

METHODS: dict[str, type[OneByOne]] = {"algorithm1": Algorithm1, "grid": GridSearch}
