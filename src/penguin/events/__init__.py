"""What penguin reports about its work, a module per subject: events own log line and metric."""
