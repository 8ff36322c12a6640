"""Posteriors of many parameters: weighted quasi-random points, and a measured error."""
