"""How good rankings are: measures over queries, paired comparisons, and TREC's files."""
