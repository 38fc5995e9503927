"""The risk, a weighted mean of a loss over queries, evaluated shard by shard."""
