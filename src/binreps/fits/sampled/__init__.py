"""The posterior by seeded sampling: chains side by side, and the error that they show themselves."""
