"""`python -m binreps`: the command line."""

from binreps.cli.app import main

if __name__ == "__main__":
    main()
