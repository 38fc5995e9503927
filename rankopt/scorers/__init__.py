"""From parameters to scores of documents, and from slopes in the scores back to slopes in the parameters."""
