"""Findings: when not to believe a fit, and what to do then."""
