"""Showing: results back in the user's own table, file, picture or page."""
