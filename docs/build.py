"""Build the documentation; every warning is an error: python3 dev.py docs [--site-dir site]."""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

from sphinx.cmd.build import main

ROOT = Path(__file__).parent.parent

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--site-dir", default=ROOT / "site", help="folder for the pages")
    site = str(parser.parse_args().site_dir)
    # Pages that were read before would not warn again, and notebooks leave files beside the site.
    with tempfile.TemporaryDirectory() as fresh:
        built = f"{fresh}/site"
        code = main(["-W", "--keep-going", "-q", "-d", f"{fresh}/parsed", str(ROOT / "docs"), built])
        if code == 0:
            shutil.copytree(built, site, dirs_exist_ok=True)
    if code == 0:
        print(f"the documentation is in {site}: open index.html")
    sys.exit(code)
