"""Build the documentation; every warning is an error: python3 dev.py docs [--site-dir site]."""

import argparse
import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import main

ROOT = Path(__file__).parent.parent

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site-dir", default=ROOT / "site", help="folder for the pages")
    site = str(parser.parse_args().site_dir)
    with tempfile.TemporaryDirectory() as parsed:  # Pages that were read before would not warn again.
        code = main(["-W", "--keep-going", "-q", "-a", "-d", parsed, str(ROOT / "docs"), site])
    if code == 0:
        print(f"the documentation is in {site}: open index.html")
    sys.exit(code)
