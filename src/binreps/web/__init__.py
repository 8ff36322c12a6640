"""The web page and its API: a door, like the command line. It needs the extra `web`."""
