"""Users × items with explicit ratings: one immutable table, where it comes from, and what is known of the items."""
