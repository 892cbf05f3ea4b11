"""Wheels with compiled kernels belong to one Python and one platform; all else is in pyproject.toml.

`python scripts/ship_kernels.py` has filled `sparsecv_mio/kernels/compiled` before; without that folder the wheel is for
any Python and platform, and kernels are compiled at their first use.
"""

import sys
import sysconfig
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel

COMPILED = Path(__file__).parent / "sparsecv_mio" / "kernels" / "compiled" / "manifest.json"


class Wheel(bdist_wheel):
    """A wheel whose name says what its kernels are compiled for."""

    def finalize_options(self) -> None:
        """Tell setuptools that a wheel with kernels is no pure one."""
        super().finalize_options()
        self.root_is_pure = not COMPILED.exists()

    def get_tag(self) -> tuple[str, str, str]:
        """Return Python, no interface of C (numba has it), and the platform; kernels call no library of it."""
        if not COMPILED.exists():
            return super().get_tag()
        platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        if platform.startswith("linux_"):
            platform = platform.replace("linux_", "manylinux_2_17_")
        return f"cp{sys.version_info[0]}{sys.version_info[1]}", "none", platform


setup(cmdclass={"bdist_wheel": Wheel})
