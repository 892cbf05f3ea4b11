"""Machine code for what Python calls: a kernel that only other kernels call is kept in the form in which it is linked.

A kernel holds the code of all that it calls, so machine code of these alone would never run: making it took a sixth of
the time of a first run. A kernel that is compiled on behalf of another one is optimised and kept as LLVM's bitcode;
where Python itself calls it later, its machine code is made then and takes the place of what was kept.

This stands on parts of numba that are not public; `jit` leaves it out where one is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult

LINKED = "linked"  # what such a library calls its form where it is kept


class LinkedCode(JITCodeLibrary):
    """What the code of one kernel is linked from; machine code once it is asked for."""

    has_machine_code = False

    def _optimize_final_module(self) -> None:
        if hasattr(self._codegen, "_pass_builder"):
            self._optimize(cost="cheap", opt=0, loop_vectorize=False, slp_vectorize=False)
        else:  # older releases of numba, with other passes: all of them, and none later
            super()._optimize_final_module()

    def _optimize(self, **how: Any) -> None:
        passes, builder = self._codegen._module_pass_manager(**how)
        passes.run(self._final_module, builder)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    def make_machine_code(self) -> None:
        """Make the code that Python can call."""
        self.has_machine_code = True
        if hasattr(self._codegen, "_pass_builder"):
            self._optimize()
        super()._finalize_final_module()

    def serialize_using_object_code(self) -> tuple[str, str, Any]:
        """Return what is kept: as numba keeps it once there is machine code."""
        if self.has_machine_code:
            found: tuple[str, str, Any] = super().serialize_using_object_code()
            return found
        return self.name, LINKED, self._final_module.as_bitcode()

    @classmethod
    def of(cls, codegen: Any, name: str, bitcode: bytes | None = None) -> LinkedCode:
        """Return a library: empty, or of what was kept."""
        library = cls(codegen, name)
        library.enable_object_caching()
        if bitcode is not None:
            library._final_module = llvm.parse_bitcode(bitcode)
            library._finalize_final_module()
        return library


class Depth:
    """How many kernels wait for the one that is being compiled; the compiler's lock is held wherever it is read."""

    value = 0

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Compile one more."""
        self.value += 1
        try:
            yield
        finally:
            self.value -= 1

    @contextmanager
    def as_called_by(self, python: bool) -> Iterator[None]:
        """Compile as if Python had called, or as if a kernel had."""
        before, self.value = self.value, 0 if python else 1
        try:
            yield
        finally:
            self.value = before


DEPTH = Depth()


class KernelCompiler(Compiler):
    """Compiles for kernels where one waits, else for Python."""

    def compile_extra(self, func: Callable[..., Any]) -> CompileResult:
        """Compile a function."""
        if DEPTH.value < 2:
            return super().compile_extra(func)
        state = self.state
        state.library = LinkedCode.of(state.targetctx.codegen(), func.__qualname__)
        state.flags.no_compile = True
        made = super().compile_extra(func)
        made = made._replace(entry_point=object())  # only tells it from others
        state.targetctx.insert_user_function(made.entry_point, made.fndesc, [made.library])
        return made


def waits(compiled: CompileResult) -> bool:
    """Whether there is no machine code yet."""
    return isinstance(compiled.library, LinkedCode) and not compiled.library.has_machine_code


def with_machine_code(compiled: CompileResult) -> CompileResult:
    """Make the machine code of a kernel that was compiled on behalf of another one."""
    environments = compiled._find_referenced_environments()
    compiled.library.make_machine_code()
    context = compiled.target_context
    function = context.get_executable(compiled.library, compiled.fndesc, compiled.environment)
    for one in environments:
        compiled.library.codegen.set_env(one.env_name, one)
    context.insert_user_function(function, compiled.fndesc, [compiled.library])
    return compiled._replace(entry_point=function)


def rebuilt(context: Any, kept: tuple[Any, ...]) -> CompileResult:
    """Return a kernel as it was kept, in whichever form.

    Parameters
    ----------
    context : numba's target context
    kept : tuple
        What `CompileResult._reduce` gave.
    """
    (name, form, data), description, environment, signature, _, lifted, annotation, reload_init, others = kept
    if form != LINKED:
        return CompileResult._rebuild(context, *kept)
    for function in reload_init or ():
        function()
    return CompileResult(
        target_context=context, typing_context=context.typing_context, entry_point=object(), objectmode=False,
        library=LinkedCode.of(context.codegen(), name, data), environment=environment, fndesc=description,
        type_annotation=annotation, signature=signature, lifted=lifted, typing_error=None, call_helper=None,
        metadata=None, reload_init=reload_init, referenced_envs=others,
    )  # fmt: skip
