"""Why a file is where it is: the answers of `blizzard why`. Read-only."""
