"""Run penguin as `python -m penguin`."""

from penguin.cli.app import main

main()
