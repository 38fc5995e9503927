"""`python -m rankopt` runs the command `rankopt`."""

from rankopt.cli import main

if __name__ == "__main__":
    main()
