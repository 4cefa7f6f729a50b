"""What a journal adds up to, kept up entry by entry, and how that is written down."""
