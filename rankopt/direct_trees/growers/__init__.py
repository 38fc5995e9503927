"""What grows trees, one file each: made once of the training documents, asked for one tree after the other."""
