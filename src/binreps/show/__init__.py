"""Showing: figures, words, the JSON summary and the report of an analysis; nothing is computed here."""
