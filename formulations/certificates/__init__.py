"""What a solution claims, computed again from the problem's data: in doubles, and in rational numbers."""
