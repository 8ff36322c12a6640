"""Decisions: from a fit to answers, their judgement and advice."""
