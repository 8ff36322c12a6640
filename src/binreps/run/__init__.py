"""One run: everything computed of one data set, the registry of methods, and how results are kept."""
