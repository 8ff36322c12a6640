"""The user's table to records and back: roles, guesses, counting, joining, files."""
