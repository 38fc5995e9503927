"""`python -m rankopt` is the command `rankopt`."""

from rankopt.cli import main

if __name__ == "__main__":
    main()
