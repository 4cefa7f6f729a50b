"""The sentences of answers: phrases, and the words for each state of a file."""
