"""Sets of admissible rankings: the words that state them, their rows, their structure, and the prices that prove."""
