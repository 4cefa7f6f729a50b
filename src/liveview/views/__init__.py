"""From journal, log and answers to the documents of the live page. Pure."""
