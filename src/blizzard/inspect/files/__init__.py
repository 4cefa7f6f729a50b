"""How every file of the sources stands, counted by day or partition. It looks only."""
