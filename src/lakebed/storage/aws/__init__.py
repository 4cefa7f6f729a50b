"""Parts specific to AWS and S3-compatible stores."""
