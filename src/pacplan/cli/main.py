"""What is run as `pacplan`."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from pacplan.cli import commands, plan
from pacplan.cli.catalogue import PLANNERS, PROBLEMS
from pacplan.cli.endings import Exit, end
from pacplan.cli.options import Parser
from pacplan.core.version import __version__


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command.

    Args:
        arguments: what follows `pacplan` on the command line; by default what does.

    Raises:
        SystemExit: always, with the exit code.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # A letter that a terminal cannot show is no failure.
    parser = _parser()
    typed = sys.argv[1:] if arguments is None else list(arguments)
    asked = parser.parse_args(typed)
    asked.typed = typed
    try:
        if asked.command is None:
            parser.print_help(sys.stderr)
            sys.exit(Exit.USAGE)
        asked.run(asked)
        sys.stdout.flush()
    except KeyboardInterrupt:
        end(Exit.INTERRUPTED, "stopped")
    except BrokenPipeError:
        # The reader has seen enough. The rest of the output goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(Exit.ERROR)
    sys.exit(Exit.OK)


def _parser() -> Parser:
    listed = (
        "\n".join([f"{title}:", *(f"  {name:15}  {about}" for name, about in entries.items())])
        for title, entries in (("planners", PLANNERS), ("problems", PROBLEMS))
    )
    parser = Parser(
        prog="pacplan",
        usage="pacplan COMMAND ...",
        description="Monte-Carlo planning in Markov decision processes, with guarantees.",
        epilog="\n\n".join(listed),
    )
    parser.add_argument(
        "--version", action="version", version=f"pacplan {__version__}", help="the version"
    )
    added = parser.add_subparsers(
        title="commands",
        dest="command",
        prog="pacplan",
        metavar="COMMAND",
        help="pacplan COMMAND --help says what it does and takes",
    )
    plan.add_to(added)
    commands.add_to(added)
    return parser
