"""Models from files, with nothing that a file brings along being run."""
