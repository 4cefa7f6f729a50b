"""What is peculiar to Amazon S3, and to the stores that speak its protocol."""
