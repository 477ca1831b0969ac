"""Draw the pictures of the documentation, by the code of the page that shows them: dev.py figures."""

import os
import re
from pathlib import Path

import matplotlib.pyplot as plt

DOCS = Path(__file__).parent
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

if __name__ == "__main__":
    code = "\n".join(BLOCK.findall((DOCS / "gallery.md").read_text("utf-8")))
    os.chdir(DOCS / "images")
    plt.rcParams.update({"savefig.dpi": 150, "font.size": 10})
    exec(compile(code, "gallery.md", "exec"), {})
