"""What a run sends to others while it works: traces, and where its rows come from and go to."""
