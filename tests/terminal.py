"""The command on a terminal of a given width."""

import os
import re
import struct
import subprocess

import pytest

from command_line import COMMAND

fcntl = pytest.importorskip("fcntl")
pty = pytest.importorskip("pty")
termios = pytest.importorskip("termios")


def on_terminal(columns, *arguments, command=COMMAND, **environment):
    """The exit code, and all that is written to the terminal, with its codes."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    settings = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "NO_COLOR")}
    process = subprocess.Popen(
        [command, *map(str, arguments)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=settings | {"TERM": "xterm"} | environment,
    )
    os.close(theirs)
    written = b""
    with open(ours, "rb", buffering=0) as terminal:
        while True:
            try:
                more = terminal.read(65536)
            except OSError:  # Nobody is left to write.
                break
            if not more:
                break
            written += more
    return process.wait(), written.decode().replace("\r\n", "\n")


def plain(text):
    """A text without the codes of the terminal."""
    return re.sub(r"\x1b(\[[0-9;?]*[A-Za-z]|[78])", "", text)


def without_compilations(text):
    """What is left on the terminal if kernels were compiled or not."""
    return re.sub(r"pacplan: compiling [^\n]*\n", "", text)
