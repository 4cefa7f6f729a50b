"""Run blizzard as `python -m blizzard`."""

from blizzard.cli import main

main()
