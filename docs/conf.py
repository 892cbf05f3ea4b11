"""Settings of the docs site: `make docs` builds it into build/docs."""

from __future__ import annotations

import os
import re
import sys
import warnings
from enum import Enum
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "docs" / "_ext"), str(ROOT)]
os.environ["PYTHONPATH"] = str(ROOT)  # for processes that an example may start
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

import sparsecv_mio  # noqa: E402

project = "sparsecv-mio"
author = "the authors of sparsecv-mio"
project_copyright = "the authors of sparsecv-mio, MIT licence"
version = release = sparsecv_mio.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "cli_help",
    "mathml",
]
exclude_patterns = ["_ext", "_templates", "changes", "examples", "tutorials"]
templates_path = ["_templates"]
highlight_language = "text"  # blocks without a language are formulas and screens
default_role = "literal"  # docstrings write names and formulas in single backticks
nitpicky = False

myst_enable_extensions = ["dollarmath", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints_format = "short"
autodoc_default_options = {
    "members": True,
    "member-order": "bysource",
    "inherited-members": "CallbackSupportMixin,RegressorMixin,BaseEstimator,"
    "BaseException,str,int,tuple,Enum,Sequence,Protocol,Generic,object",
}
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 90
numpydoc_show_class_members = False  # autodoc lists them, each in its place
add_module_names = False

sphinx_gallery_conf = {
    "examples_dirs": ["examples", "tutorials"],
    "gallery_dirs": ["generated/examples", "generated/tutorials"],
    "backreferences_dir": "generated/uses",
    "doc_module": ("sparsecv_mio",),
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "write_computation_times": False,
    "min_reported_time": 0,
    "ignore_repr_types": r"matplotlib",
    "thumbnail_size": (640, 448),
    "show_memory": False,
    "show_signature": False,
    "download_all_examples": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
}

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "sparsecv-mio"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "sparsecv-mio"},
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_nav_level": 1,
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "default",
    "pygments_dark_style": "monokai",
}


def _keep_words(app: Any, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """List the members of an enumeration, the words that an option takes; not what scikit-learn writes for routing."""
    if name == "get_metadata_routing" or (name.startswith("set_") and name.endswith("_request")):
        return True
    return False if isinstance(obj, Enum) else None


def _plain_signature(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str | None, returns: str | None
) -> tuple[str | None, str | None] | None:
    """Show a number that may be unknown as a number, and an enumeration without the arguments of its machinery."""
    if isinstance(obj, type) and issubclass(obj, Enum):
        return "", None
    bound = r"Annotated\[float, '[^']*'\]"
    return (re.sub(bound, "float", signature), returns) if signature else None


def _close_examples(app: Any, docname: str, source: list[str]) -> None:
    """Drop the empty line that doctest needs before the end of a block."""
    source[0] = source[0].replace("\n\n```\n", "\n```\n")


def setup(app: Any) -> None:
    """Connect the adjustments above."""
    app.connect("autodoc-skip-member", _keep_words)
    app.connect("autodoc-process-signature", _plain_signature)
    app.connect("source-read", _close_examples)
