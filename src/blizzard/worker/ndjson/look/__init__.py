"""What values look like, for those who want to know what columns they need."""
