"""A fitted model in use: lists for many users, rules and what they cost, new users, items alike."""
