"""Formulas as MathML, made when the site is built: pages need no script and no network.

The converter is docutils' own. It refuses what it does not know, and that fails the build. Operators
may be written as Unicode, so that formulas can be read in the sources, too. Not every system has a
font for mathematics: the site gets its own, the part that it needs of the one that ziamath has.
"""

import re
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from fontTools import subset
from fontTools.ttLib import TTFont
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

logger = logging.getLogger(__name__)

# Each as the converter wants it.
OPERATORS = str.maketrans(
    {
        "−": "-",
        "·": r"\cdot ",
        "…": r"\ldots ",
        "⋯": r"\cdots ",
        "′": "'",
        "≤": r"\le ",
        "≥": r"\ge ",
        "≠": r"\ne ",
        "≈": r"\approx ",
        "∈": r"\in ",
        "→": r"\to ",
        "∞": r"\infty ",
        "⋆": r"\star ",
    }
)
# These are set apart from what they are applied to, and from what they multiply.
FUNCTION = r"\\(?:log|exp)\b"
AFTER, BEFORE = re.compile(rf"({FUNCTION}) (?=[\w\\])"), re.compile(rf"(?<=[\w)}}\]′]) ({FUNCTION})")
# The converter puts an index under a letter with an accent, unless that is one part of a group.
ACCENT = re.compile(r"(\\(?:bar|hat|underline) ?\w)(?=[_^])")
# A line may end after one of these, as in TeX, in formulas that are longer than this.
RELATIONS, SHORT = "=≤≥<>≈→∈", 24
# Latin, Greek, punctuation, arrows and operators, ceilings, and both alphabets in italics.
CHARACTERS = chain(
    range(0x20, 0x7F),
    range(0xA0, 0x100),
    range(0x2B0, 0x400),
    range(0x2010, 0x2070),
    (0x210E, 0x2190, 0x2192),
    range(0x2200, 0x2300),
    range(0x2308, 0x230C),
    range(0x239B, 0x23B2),
    range(0x1D434, 0x1D468),
    range(0x1D6E2, 0x1D71C),
    (0x1D7CF,),
)


def _mathml(node: nodes.Element, source: str, *, block: bool) -> str:
    spaced = AFTER.sub(r"\1\\,", BEFORE.sub(r"\\,\1", source))
    grouped = ACCENT.sub(r"{\1{}}", spaced)
    try:
        made = tex2mathml(grouped.translate(OPERATORS), as_block=block)
    except ValueError as error:
        logger.warning("cannot typeset %r: %s", source, error, location=node)
        return ""
    # A prime stands as high as it is drawn.
    return re.sub(r"<mo>'</mo>", "<mo>′</mo>", made)


def _pieces(source: str) -> list[str]:
    """A formula in the parts between which a line may end."""
    if len(source) <= SHORT:
        return [source]
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(source):
        depth += (letter in "({[") - (letter in ")}]")
        if depth <= 0 and letter in RELATIONS:
            parts.append(source[start : at + 1])
            start = at + 1
    return [*parts, source[start:]]


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """A formula within a sentence."""
    made = [_mathml(node, piece, block=False) for piece in _pieces(node.astext())]
    self.body.append("<wbr>".join(made))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """A formula on lines of its own, which scrolls by itself if it is wider than the page."""
    self.body.append(f'<div class="formula">{_mathml(node, node.astext(), block=True)}</div>\n')
    raise nodes.SkipNode


def write_font(app: Sphinx, error: Exception | None) -> None:
    """Put the part of the font that formulas need beside the pages."""
    if error is None and app.builder.format == "html":
        font = TTFont(str(files("ziamath") / "fonts" / "STIXTwoMath-Regular.ttf"))
        part = subset.Subsetter(subset.Options(layout_features=["*"], notdef_outline=True))
        part.populate(unicodes=CHARACTERS)
        part.subset(font)
        font.flavor = "woff"
        font.save(Path(app.outdir) / "_static" / "math.woff")


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer the renderer to Sphinx under the name "mathml"."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.connect("build-finished", write_font)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
