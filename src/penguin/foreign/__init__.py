"""Files of other programs: finding, judging and reading them."""
