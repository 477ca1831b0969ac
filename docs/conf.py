"""How Sphinx makes the documentation: python3 dev.py docs."""

import re
import shutil
import sys
from pathlib import Path
from typing import Any

from docutils import nodes

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # For mathml.py.

from pacplan.core.version import __version__  # noqa: E402

HYPHEN = re.compile(r"(?<=\w)-(?=\w)")

project = "pacplan"
author = "the pacplan authors"
project_copyright = author
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton", "mathml"]
exclude_patterns = ["results/runs.*"]

myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
myst_links_external_new_tab = False
html_math_renderer = "mathml"

# The notebooks are examples, and lie with them; Sphinx wants its pages below this folder.
for notebook in (HERE.parent / "examples" / "notebooks").glob("*.ipynb"):
    (HERE / "notebooks").mkdir(exist_ok=True)
    shutil.copy(notebook, HERE / "notebooks")
nb_execution_mode = "auto"  # Those that were saved without their output are run.
nb_execution_raise_on_error = True
nb_execution_timeout = 300

# Words in single backticks in a docstring are linked if they name something that is documented.
default_role = "py:obj"
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented"
autodoc_default_options = {"members": True}
autoclass_content = "class"
napoleon_numpy_docstring = False
napoleon_use_ivar = True
python_display_short_literal_types = True
python_maximum_signature_line_length = 88

html_theme = "furo"
html_title = f"pacplan {release}"
html_static_path = ["_static"]
html_css_files = ["pacplan.css"]
html_show_sphinx = False
html_copy_source = False
pygments_style = "default"
pygments_dark_style = "github-dark"
copybutton_selector = "div.highlight-python pre, div.highlight-sh pre"


def keep_indented(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """An indented paragraph of a docstring is code or a formula, and is shown as it is written."""
    above, shown = "", []
    for line in lines:
        if line.startswith("    ") and above and not above.startswith(" ") and shown[-1] == "":
            shown += ["::", ""]
        shown.append(line)
        above = line or above
    lines[:] = shown


def keep_words(app: Any, page: nodes.document, name: str) -> None:
    """In the narrow cells of tables, no line ends at the hyphen of a word or of 1e-3."""
    for cell in page.findall(nodes.entry):
        for text in list(cell.findall(nodes.Text)):
            if not isinstance(text.parent, nodes.literal):
                whole = HYPHEN.sub("\N{NON-BREAKING HYPHEN}", text)
                text.parent.replace(text, nodes.Text(whole))


def setup(app: Any) -> None:
    """Called by Sphinx; docstrings are seen before Napoleon reads their sections."""
    app.connect("autodoc-process-docstring", keep_indented, priority=400)
    app.connect("doctree-resolved", keep_words)
