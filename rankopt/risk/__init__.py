"""The risk, a weighted mean of a loss over queries: cut into shards, which answer questions about it."""
