"""Fits: from a count table to rates, scores and predictions."""
