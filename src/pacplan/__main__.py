"""`python -m pacplan` is the command `pacplan`."""

from pacplan.cli import main

main()
