"""Documents stored beside the data: journal entries, pending metas, facts about data files."""
