"""Private parts of numba: run with the oldest and the newest release that pyproject.toml allows."""

from __future__ import annotations

from pathlib import Path

import numba
import numpy as np

from sparsecv_mio.kernels.numba_internals import (
    argument_types,
    dump_kernel,
    host_machine,
    load_kernel,
    machine_of,
    prepare_loading,
    user_cache_folder,
)


def test_a_kernel_is_the_same_after_it_was_bytes() -> None:
    @numba.njit(no_cfunc_wrapper=True)
    def twice(x):
        return 2.0 * x.sum()

    signature = (numba.float64[::1],)
    twice.compile(signature)
    compiled = twice.overloads[signature]
    content = dump_kernel(compiled)
    assert content
    context = compiled.target_context
    prepare_loading(context)
    loaded = load_kernel(content, context)
    assert argument_types(signature) == tuple(loaded.signature.args) == signature
    assert loaded.entry_point(np.arange(4.0)) == 12.0


def test_code_that_depends_on_this_process_has_no_bytes() -> None:
    @numba.njit
    def count_of(x):
        with numba.objmode(n="int64"):
            n = len(x)
        return n

    assert count_of(np.ones(3)) == 3
    assert dump_kernel(count_of.overloads[count_of.signatures[0]]) is None


def test_the_machine_and_the_folder_have_names() -> None:
    triple, processor, features = host_machine()
    assert (triple, processor, features) == machine_of(numba.core.registry.cpu_target.target_context)
    assert triple.count("-") >= 2 and processor and isinstance(features, str)
    assert "sparsecv-mio" in Path(user_cache_folder("sparsecv-mio")).parts
