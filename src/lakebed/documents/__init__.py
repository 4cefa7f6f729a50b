"""What is stored next to the data: journal entries, pending metas, facts about data files."""
