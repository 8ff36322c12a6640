"""The command line: parse, call the library, print. The only place with progress bars."""
