"""Reading: from any table or file to a count table."""
