"""`python3 -m tallybook`."""

import sys


def main() -> int:
    print("tallybook: the command line is not built yet", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
