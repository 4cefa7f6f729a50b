"""What penguin reports of its work, a module for each subject: events own log line and metric."""
