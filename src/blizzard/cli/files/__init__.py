"""`blizzard files`: what landed, file by file and day by day, against what is in the table."""
