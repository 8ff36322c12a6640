"""The posterior by deterministic integration: the same number every time, with a known error."""
