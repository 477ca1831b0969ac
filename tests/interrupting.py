"""Processes that are sent Ctrl-C once they have begun."""

import os
import signal
import subprocess
import sys
import time

from command_line import Outcome


def interrupted(command, *has_begun, folder=None, wait=0.0, patience=600):
    """Start a command, send Ctrl-C some time after each `has_begun()` says so, and say how it ended."""
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A shell that runs tests in the background makes them ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        for begun in has_begun:
            while not begun():
                assert process.poll() is None, process.stderr.read()
                time.sleep(0.01)
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=patience)
    finally:
        process.kill()
        process.wait()
    return Outcome(process.returncode, stdout, stderr)


def interrupted_script(script, *arguments, folder, begun, **options):
    """The same for a script that makes files of the names `begun` in a folder of its own."""
    (folder / "script.py").write_text(script)
    command = [sys.executable, "script.py", *arguments]
    return interrupted(command, *((folder / name).exists for name in begun), folder=folder, **options)
