"""Run blizzard as `python -m blizzard`."""

from blizzard.cli.app import main

main()
