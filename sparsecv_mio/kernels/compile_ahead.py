"""Helper processes that compile what a run will need while it goes on, and claims by which no kernel is compiled twice.

A kernel that is in no cache is compiled where it is called, and what that run will call next is known: the list of
`kernel_list.json` says which kernels each use of the package calls, and for which types. So the first kernel that is
missing starts helpers, one for each further core; each takes kernels from the end of what the run will call, keeps
them in the cache, and the run finds them there. They are plain processes of the same interpreter that read names from
a pipe: they import nothing of the user's, ask nothing of a notebook or a daemon, have a low priority and end with the
process that started them, or when nothing is left to do.

Who compiles a kernel claims it first by a lock that the system gives back when its process ends, however it ends; who
finds it claimed waits for it. Processes that begin together share the work in this way, helpers or not.
"""

from __future__ import annotations

import atexit
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from numba import types
from numba.core import event
from numba.core.compiler_lock import global_compiler_lock

try:
    import fcntl
except ImportError:  # Windows: everybody compiles alone
    fcntl = None  # type: ignore[assignment]

VARIABLE = "SPARSECV_MIO_HELPERS"  # how many; 0 for none
HELPER = "this is one"  # its value in a helper
MOST_HELPERS = 7
LONGEST_WAIT = 30.0  # seconds for a kernel that another process compiles; then it is compiled here too
CLAIM_LOOK = 0.02  # seconds between two looks at a claim
IDLE = 20.0  # seconds that a helper waits for more to do
LOW_PRIORITY = 10
EVERYTHING = "*"  # told to helpers in place of a kernel
PACKAGE = __name__.rpartition(".")[0]
LIST = Path(__file__).with_name("kernel_list.json")
CODE = (
    f"import sys; sys.path[:0] = sys.argv[3:]; from {__name__} import help_on; help_on(float(sys.argv[1]), sys.argv[2])"
)


def wanted_helpers() -> int:
    """Return how many helpers there may be: as `SPARSECV_MIO_HELPERS` says, else one for each further core."""
    setting = os.environ.get(VARIABLE, "")
    if setting == HELPER or fcntl is None:
        return 0
    if setting.isdecimal():
        return min(int(setting), MOST_HELPERS)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores - 1, MOST_HELPERS)


# -- claims ----------------------------------------------------------------------------------------------------------


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


class InOtherHands(BaseException):
    """A helper has something else to do than to wait; an exception of which the compiler takes no note."""


def claim(place: Path, made: Callable[[], bool], meanwhile: Callable[[], bool] | None = None) -> int | None:
    """Claim a kernel that is about to be compiled, once nobody else does.

    Parameters
    ----------
    place : Path
        File of the claim.
    made : callable
        Whether the kernel is in the cache by now.
    meanwhile : callable, optional
        Does some other work where there is some, and returns whether there was.

    Returns
    -------
    int or None
        What `give_back` takes; None where the kernel was made meanwhile, took too long, or nothing can be claimed.

    Raises
    ------
    InOtherHands
        In a helper, where another process compiles it.
    """
    if fcntl is None:
        return None
    try:
        descriptor = os.open(place, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError:
        return None
    if _locked(descriptor):
        return descriptor
    if os.environ.get(VARIABLE) == HELPER and not made():
        os.close(descriptor)
        raise InOtherHands
    until = time.monotonic() + LONGEST_WAIT
    with event.trigger_event("numba:compile"):  # to those who tell the user or stop a clock it is compiling too
        while not made() and time.monotonic() < until:
            if meanwhile is None or not meanwhile():
                time.sleep(CLAIM_LOOK)
            if _locked(descriptor):
                return descriptor
    os.close(descriptor)
    return None


def give_back(place: Path, descriptor: int) -> None:
    """End a claim; whoever waits for it looks into the cache next."""
    with suppress(OSError):
        place.unlink()
    with suppress(OSError):
        os.close(descriptor)


def is_claimed(place: Path) -> bool:
    """Whether a process that is alive holds a claim."""
    try:
        descriptor = os.open(place, os.O_RDWR)
    except OSError:
        return False
    try:
        return not _locked(descriptor)
    finally:
        os.close(descriptor)


# -- the list --------------------------------------------------------------------------------------------------------


def kernel(name: str) -> Any:
    """Return a kernel by `MODULE.KERNEL`."""
    module, _, own = name.partition(".")
    return getattr(import_module(f"{PACKAGE}.{module}"), own)


@cache
def callees(name: str) -> frozenset[str]:
    """Return the kernels that a kernel calls by the words in its code, and those that they call."""
    function = kernel(name).py_func
    words = function.__code__.co_names
    values = [function.__globals__.get(word) for word in words]
    values += [getattr(value, word, None) for value in values if isinstance(value, ModuleType) for word in words]
    direct = {
        f"{value.py_func.__module__.rpartition('.')[2]}.{value.py_func.__qualname__}"
        for value in values
        if hasattr(value, "py_func") and hasattr(value, "_cache")
    }
    return frozenset(direct.union(*(callees(value) for value in direct if value != name)))


class KernelList:
    """The kernels of the list that are needed soon.

    Parameters
    ----------
    path : Path
        The list.

    Attributes
    ----------
    types_of : dict of lists of lists of str
        Types of the arguments for which each kernel is compiled, as numba writes them.
    uses : dict of lists of str
        Kernels that Python calls, by the use that calls them.
    called : set of str
        All of these.
    failed : set of str
        Kernels that could not be compiled or kept here; they are left to who needs them, who will say why.
    """

    def __init__(self, path: Path = LIST) -> None:
        content = json.loads(path.read_text(encoding="utf-8"))
        self.types_of: dict[str, list[list[str]]] = {}
        for name, texts in content["kernels"]:
            self.types_of.setdefault(name, []).append(texts)
        self.uses: dict[str, list[str]] = content["uses"]
        self.called = {name for use in self.uses.values() for name in use}
        self.failed: set[str] = set()

    def order(self, told: Iterable[str]) -> list[str]:
        """Return the kernels that a run will call that was seen to call some.

        The uses that call most of what was seen are what it may be; first comes what most of these call, and of that
        what they call last, as the run begins at the other end.

        Parameters
        ----------
        told : iterable of str
            Kernels that it called.
        """
        told = set(told)
        if EVERYTHING in told:
            return list(dict.fromkeys(name for use in reversed(self.uses.values()) for name in reversed(use)))
        seen = {name: len(told.intersection(use)) for name, use in self.uses.items()}
        most = max(seen.values(), default=0)
        likely = [use for name, use in self.uses.items() if seen[name] == most > 0]
        votes = Counter(name for use in likely for name in use)
        where = {name: i for use in likely for i, name in enumerate(use)}
        return sorted(votes, key=lambda name: (-votes[name], -where[name]))

    def left(self, told: Iterable[str], folder: Path) -> list[str]:
        """Return those of them that are not in the cache, and may be compiled here."""
        compiled, _ = files_of_kernels(folder)
        return [name for name in self.order(told) if prefix(name) not in compiled and name not in self.failed]

    def ready(self, wanted: Iterable[str], folder: Path, from_end: bool = False) -> str | None:
        """Return a kernel for some wanted ones that can be compiled by itself, None where there is none.

        All that it calls is in the cache, and nobody else compiles it.

        Parameters
        ----------
        wanted : iterable of str
            Kernels, those to have first in front.
        folder : Path
        from_end : bool
            Of what a wanted kernel calls, take the last that is ready and not the first, with which the run itself goes
            on.
        """
        compiled, claims = files_of_kernels(folder)
        missing = [name for name in self.types_of if prefix(name) not in compiled]
        free = [name for name in missing if name not in self.failed and callees(name).isdisjoint(missing)]
        for target in wanted:
            below = callees(target) | {target}
            for name in reversed(free) if from_end else free:
                if name in below and not any(map(is_claimed, claims.get(prefix(name), ()))):
                    return name
        return None

    def compile(self, name: str, folder: Path) -> None:
        """Compile a kernel for the types of the list, if that can be done; those that are in the cache are loaded."""
        with suppress(Exception), global_compiler_lock, kernel(name)._cache.as_called_by(python=name in self.called):
            for texts in self.types_of[name]:
                kernel(name).compile(tuple(read_type(text) for text in texts))
        if prefix(name) not in files_of_kernels(folder)[0]:
            self.failed.add(name)


def prefix(name: str) -> str:
    """Return how the files of a kernel are named, but for its types and the processor."""
    return str(kernel(name)._cache.prefix)


def files_of_kernels(folder: Path) -> tuple[set[str], dict[str, list[Path]]]:
    """Return the prefixes of the kernels that are in the cache, and the files of claims by prefix."""
    compiled: set[str] = set()
    claims: dict[str, list[Path]] = {}
    with suppress(OSError):
        for name in os.listdir(folder):
            own, _, end = name.rpartition("-")
            if end.endswith(".nbc"):
                compiled.add(own)
            elif end.endswith(".nbc.claim"):
                claims.setdefault(own, []).append(folder / name)
    return compiled, claims


def read_type(text: str) -> Any:
    """Return a type that numba writes so: numbers, arrays, tuples and the named tuples of our kernels.

    Parameters
    ----------
    text : str

    Raises
    ------
    ValueError
        For any other.
    """
    text = text.strip()
    if text.startswith("readonly "):
        return read_type(text.removeprefix("readonly ")).copy(readonly=True)
    if text.startswith("Literal[int]("):
        return types.literal(int(text[len("Literal[int](") : -1]))
    head, _, members = text.partition("(")
    if not members:
        named = getattr(types, "boolean" if head == "bool" else head, None)
        if not isinstance(named, types.Type):
            raise ValueError(f"type {text}")
        return named
    parts = _parts(members[:-1])
    if head == "array":
        return types.Array(read_type(parts[0]), int(parts[1].strip()[:-1]), parts[2].strip())
    if len(parts) == 1 and " x " in parts[0]:
        element, _, count = parts[0].rpartition(" x ")
        parts = [element] * int(count)
    inner = tuple(read_type(inside) for inside in parts)
    return types.BaseTuple.from_types(inner, None if head in ("Tuple", "UniTuple") else named_tuples()[head])


def _parts(text: str) -> list[str]:
    """Split at commas outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


@cache
def named_tuples() -> dict[str, type[Any]]:
    """Return the named tuples that kernels take, by name."""
    modules = [import_module(f"{PACKAGE}.{name.partition('.')[0]}") for name in KernelList().types_of]
    classes = [member for module in modules for member in vars(module).values() if isinstance(member, type)]
    return {member.__name__: member for member in classes if issubclass(member, tuple) and hasattr(member, "_fields")}


# -- helpers ---------------------------------------------------------------------------------------------------------


class Helpers:
    """The helpers that this process started, in the folder in which kernels are kept; one process has some at a time.

    Attributes
    ----------
    processes : list of Popen
    """

    def __init__(self) -> None:
        self.processes: list[subprocess.Popen[bytes]] = []
        self.told: list[str] = []
        self._lock, self._claimed = threading.RLock(), -1
        self._busy = False  # with what is done while waiting

    @cached_property
    def listed(self) -> KernelList | None:
        """The list; None where it cannot be read."""
        try:
            return KernelList()
        except (OSError, ValueError, LookupError):
            return None

    def tell(self, name: str, folder: Path) -> None:
        """Take note of a kernel that had to be compiled here, or of `EVERYTHING`; start helpers if they have work.

        Parameters
        ----------
        name : str
            `MODULE.KERNEL`.
        folder : Path
            Where kernels are kept.
        """
        if name in self.told or not wanted_helpers() or self.listed is None:
            return
        with self._lock:
            self.told.append(name)
            self._pass_on([name])
            if not self.processes and len({*self.listed.left(self.told, folder)} - {name}) > 1:
                self._start(folder)

    def meanwhile(self, name: str, folder: Path) -> bool:
        """Compile something that a kernel needs that another process compiles; returns whether there was anything.

        Parameters
        ----------
        name : str
            The kernel that is waited for.
        folder : Path
        """
        if self._busy or self.listed is None or os.environ.get(VARIABLE) == HELPER:
            return False
        wanted = [listed for listed in (name, *reversed(self.told)) if listed in self.listed.types_of]
        kernel = self.listed.ready(wanted, folder)
        if kernel is None:
            return False
        self._busy = True
        try:
            self.listed.compile(kernel, folder)
        finally:
            self._busy = False
        return True

    def _pass_on(self, names: list[str]) -> None:
        for process in [*self.processes]:
            try:
                if process.stdin is None or process.poll() is not None:
                    raise OSError
                process.stdin.write("".join(f"{name}\n" for name in names).encode())
                process.stdin.flush()
            except OSError:  # it has ended: nothing was left to do, or somebody ended it
                self.processes.remove(process)

    def _start(self, folder: Path) -> None:
        if "python" not in Path(sys.executable or "").name.lower() or getattr(sys, "frozen", False):
            return  # Python inside another program
        if self._claimed < 0:
            with suppress(OSError):
                descriptor = os.open(folder / "helpers.claim", os.O_RDWR | os.O_CREAT, 0o600)
                if not _locked(descriptor):
                    os.close(descriptor)
                    return
                self._claimed = descriptor
        count, root = wanted_helpers(), str(Path(__file__).parents[2])
        environment = os.environ | {VARIABLE: HELPER, "NUMBA_NUM_THREADS": "1"}
        for i in range(count):
            command = [sys.executable, "-P", "-c", CODE, str(i / count), str(folder), root]
            with suppress(OSError, ValueError):
                started = subprocess.Popen(
                    command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL, start_new_session=True,
                )  # fmt: skip
                self.processes.append(started)
        self._pass_on(self.told)

    def end(self) -> None:
        """End them: what they have not finished is dropped."""
        with self._lock:
            for process in self.processes:
                process.kill()
                if process.stdin is not None:
                    with suppress(OSError):
                        process.stdin.close()
                process.wait()
            self.forget()

    def forget(self) -> None:
        """Leave them to the process that they belong to, of which this one is a copy."""
        for process in self.processes:
            process.returncode = 0  # not ours to wait for
        self.processes, self.told, self._lock = [], [], threading.RLock()
        if self._claimed >= 0:
            with suppress(OSError):
                os.close(self._claimed)
            self._claimed = -1


HELPERS = Helpers()
atexit.register(HELPERS.end)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=HELPERS.forget)


def help_on(turn: float, place: str) -> None:
    """Be a helper: compile what the process at the other end of the standard input will need.

    Parameters
    ----------
    turn : float
        Where in what is needed it begins, from 0 to 1, so that helpers begin in different places.
    place : str
        Folder in which kernels are kept.
    """
    with suppress(OSError, AttributeError):
        os.nice(LOW_PRIORITY)
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for line in sys.stdin:
            lines.put(line.strip())
        os._exit(0)  # who started it has ended

    threading.Thread(target=read, daemon=True).start()
    listed, told, folder = KernelList(), [lines.get()], Path(place)
    while True:
        while not lines.empty():
            told.append(lines.get())
        names = listed.left(told, folder)
        first = int(turn * len(names))
        name = listed.ready([*names[first:], *names[:first]], folder, from_end=True)
        if name is not None:
            with suppress(InOtherHands):
                listed.compile(name, folder)
        elif names:
            time.sleep(CLAIM_LOOK)
        else:
            try:
                told.append(lines.get(timeout=IDLE))
            except queue.Empty:
                return
