"""Programs as plain data, and as readers and files write them: names, algebra, MPS and LP."""
