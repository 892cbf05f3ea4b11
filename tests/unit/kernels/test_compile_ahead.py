"""Helpers that compile ahead, claims on kernels, and the list of what is compiled for which types."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from sparsecv_mio.kernels import compile_ahead
from sparsecv_mio.kernels.compile_ahead import (
    EVERYTHING,
    HELPER,
    VARIABLE,
    KernelList,
    callees,
    claim,
    files_of_kernels,
    give_back,
    help_on,
    is_claimed,
    kernel,
    named_tuples,
    prefix,
    read_type,
    wanted_helpers,
)
from sparsecv_mio.warmup import STEPS, declared_kernels

posix = pytest.mark.skipif(compile_ahead.fcntl is None, reason="Windows has no such locks: no helpers there")
HOLD = """
import sys, time
from pathlib import Path
from sparsecv_mio.kernels.compile_ahead import claim
assert claim(Path(sys.argv[1]), lambda: False) is not None
print("held", flush=True)
time.sleep(60)
"""
RUN = """
import sys
from sparsecv_mio.kernels.compile_ahead import HELPERS
from sparsecv_mio.kernels.kernel_cache import own_folder
HELPERS.tell(sys.argv[1], own_folder())
print(*(process.pid for process in HELPERS.processes), flush=True)
sys.stdin.readline()
"""
ONCE = """
from sparsecv_mio.kernels import compile_ahead
from sparsecv_mio.kernels.kernel_cache import KernelCache
compile_ahead.LONGEST_WAIT = 3600.0  # however slow the machine is
made, save = [], KernelCache.save_overload
def noted(self, sig, data):
    made.append(f"{self.module}.{self.kernel}")
    save(self, sig, data)
KernelCache.save_overload = noted
from sparsecv_mio.warmup import STEPS
STEPS["oracles"]()
print(*sorted(made))
"""


def test_types_are_read_as_they_are_written() -> None:
    texts = {text for several in KernelList().types_of.values() for one in several for text in one}
    assert len(texts) > 60
    assert {text: str(read_type(text)) for text in texts} == {text: text for text in texts}
    with pytest.raises(ValueError, match="nosuch"):
        read_type("nosuch")


def test_named_tuples_of_kernels_are_known_by_name() -> None:
    found = named_tuples()
    assert {"Fold", "Node", "Margin"} <= {*found} and all(name == one.__name__ for name, one in found.items())


@posix
def test_a_helper_ends_with_its_pipe() -> None:
    assert help_on.__name__ in compile_ahead.CODE
    done = subprocess.run([sys.executable, "-c", compile_ahead.CODE, "0.0", "."], stdin=subprocess.DEVNULL, timeout=100)
    assert done.returncode == 0


def test_the_list_has_every_kernel_and_every_use() -> None:
    """Else run scripts/list_kernels.py."""
    listed = KernelList()
    inlined = {"linear_order"}  # numba puts it where it is called
    assert {*declared_kernels()} - {*listed.types_of} - inlined == set()
    assert {*listed.types_of} <= {*declared_kernels()} and {*listed.uses} == {*STEPS}
    assert {name for use in listed.uses.values() for name in use} <= {*listed.types_of}


def test_kernels_stand_after_those_that_they_call() -> None:
    place = {name: i for i, name in enumerate(KernelList().types_of)}
    late = {(name, one) for name in place for one in callees(name) & place.keys() if place[one] > place[name]}
    assert not late


def test_what_a_run_will_call_is_known_from_what_it_called() -> None:
    listed = KernelList()
    for name, use in listed.uses.items():
        order = listed.order(use)
        assert {*use} <= {*order}, name
    assert {*listed.order([EVERYTHING])} == {name for use in listed.uses.values() for name in use}
    assert listed.order([]) == listed.order(["no.kernel"]) == []


def test_what_can_be_compiled_by_itself(tmp_path: Path) -> None:
    """Only kernels that call nothing which is missing, and nobody compiles; in the end the wanted one itself."""
    listed, done, wanted = KernelList(), [], "path_tree.run"
    while (name := listed.ready([wanted], tmp_path)) is not None:
        assert {*done} >= callees(name) & {*listed.types_of}
        held = claim(tmp_path / f"{prefix(name)}-0.nbc.claim", lambda: False)
        if held is not None:
            assert listed.ready([wanted], tmp_path) != name
            give_back(tmp_path / f"{prefix(name)}-0.nbc.claim", held)
        done.append(name)
        (tmp_path / f"{prefix(name)}-0.nbc").touch()
    assert done[-1] == wanted and {*done} == (callees(wanted) | {wanted}) & {*listed.types_of}
    kept, claims = files_of_kernels(tmp_path)
    assert kept == {prefix(name) for name in done} and not claims
    assert listed.ready([wanted], tmp_path) is None


def test_how_many_helpers(monkeypatch: pytest.MonkeyPatch) -> None:
    for asked, count in (("0", 0), ("2", 2), ("100", compile_ahead.MOST_HELPERS), (HELPER, 0)):
        monkeypatch.setenv(VARIABLE, asked)
        assert wanted_helpers() == (count if compile_ahead.fcntl else 0)
    monkeypatch.delenv(VARIABLE)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    assert wanted_helpers() == 0, "one core"


@posix
def test_a_claim_ends_with_the_process_that_holds_it(tmp_path: Path) -> None:
    place = tmp_path / "kernel.nbc.claim"
    assert not is_claimed(place)
    command = [sys.executable, "-c", HOLD, str(place)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        assert is_claimed(place)
        assert claim(place, lambda: True) is None, "it is in the cache by now"
        other.kill()
    assert not is_claimed(place)
    held = claim(place, lambda: False)
    assert held is not None and is_claimed(place)
    give_back(place, held)
    assert not place.exists()


@posix
def test_nobody_waits_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "kernel.nbc.claim"
    held = claim(place, lambda: False)
    monkeypatch.setattr(compile_ahead, "LONGEST_WAIT", 0.2)
    assert held is not None and claim(place, lambda: False) is None
    give_back(place, held)
    assert claim(tmp_path / "no folder" / "kernel.claim", lambda: False) is None


@posix
def test_processes_that_begin_together_compile_a_kernel_once(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), VARIABLE: "0"}
    command = [sys.executable, "-c", ONCE]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(2)]
    made = [name for process in both for name in process.communicate()[0].split()]
    assert all(process.returncode == 0 for process in both)
    expected = {name: len(KernelList().types_of[name]) for name in set(made)}
    assert {name: made.count(name) for name in expected} == expected and len(made) > 8
    assert not [*tmp_path.glob("*/*.claim")]


@posix
@pytest.mark.parametrize("sent", [signal.SIGKILL, None])
def test_helpers_compile_and_end_with_the_run(sent: signal.Signals | None, tmp_path: Path) -> None:
    listed = KernelList()
    told, *others = listed.uses["oracles"]
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path), VARIABLE: "1"}
    command = [sys.executable, "-c", RUN, told]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as run:
        assert run.stdout is not None
        (helper,) = (psutil.Process(int(number)) for number in run.stdout.readline().split())
        until = time.monotonic() + 120.0
        wanted = others[-1]
        while not [*tmp_path.glob(f"*/{wanted}-*.nbc")] and time.monotonic() < until:
            time.sleep(0.1)
        assert [*tmp_path.glob(f"*/{wanted}-*.nbc")] and helper.nice() > 0
        if sent is None:
            run.communicate("\n")
        else:
            run.send_signal(sent)
    gone, alive = psutil.wait_procs([helper], timeout=20.0)
    assert gone and not alive
    assert kernel(wanted).py_func.__name__ == wanted.partition(".")[2]
