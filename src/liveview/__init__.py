"""The live page, `blizzard top` and the JSON API: what both programs are doing. Read-only."""
