"""Methods that hand cells to branch-and-bound one by one, by the word that names them."""

from __future__ import annotations

from sparsecv_mio.search.algorithm1 import Algorithm1, OneByOne
from sparsecv_mio.search.grid import GridSearch
from sparsecv_mio.search.joint import JointSearch

METHODS: dict[str, type[OneByOne]] = {"joint": JointSearch, "algorithm1": Algorithm1, "grid": GridSearch}
