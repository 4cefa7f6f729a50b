"""What follows a journal entry: handing files to penguin, dead letters."""
