"""The command line as ``python -m mace``."""

from mace.cli import main

if __name__ == "__main__":
    main()
