"""The words: variables and rows by name, the forms, the bridges between forms, Solution, solve()."""
