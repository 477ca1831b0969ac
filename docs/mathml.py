"""Formulas as MathML, made when the site is built: pages need no script and no network to show them.

The converter is docutils' own. It refuses what it does not know, which fails the build. In the sources of
pages, operators may be written as Unicode, so that formulas can be read there too.
"""

from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.errors import SphinxError
from sphinx.writers.html5 import HTML5Translator

# Each as the converter wants it.
OPERATORS = str.maketrans(
    {
        "−": "-",
        "·": r"\cdot ",
        "…": r"\dots ",
        "⋯": r"\cdots ",
        "′": r"^{\prime}",
        "≤": r"\le ",
        "≥": r"\ge ",
        "≠": r"\ne ",
        "≈": r"\approx ",
        "∈": r"\in ",
        "→": r"\to ",
        "∞": r"\infty ",
        "⋆": r"\star ",
        "∨": r"\vee ",
    }
)


def _mathml(node: nodes.Element, *, block: bool) -> str:
    source = node.astext()
    try:
        return tex2mathml(source.translate(OPERATORS), as_block=block)
    except ValueError as error:
        raise SphinxError(f"{node.source}:{node.line}: cannot typeset {source!r}: {error}") from error


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """A formula within a sentence."""
    self.body.append(_mathml(node, block=False))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on lines of its own, which scrolls by itself if it is wider than the page."""
    self.body.append(f'<div class="formula">{_mathml(node, block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the renderer to Sphinx under the name "mathml"."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
