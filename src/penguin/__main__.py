"""Run penguin as `python -m penguin`."""

from penguin.cli import main

main()
