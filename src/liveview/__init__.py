"""What blizzard and penguin are doing, for a page, a terminal and a machine. Read-only."""
