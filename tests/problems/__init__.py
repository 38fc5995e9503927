"""What tests of several rooms are asked about: problems, data, and when two answers are the same."""
