"""`python3 -m stayer_operator`: the operator."""

import sys

from stayer_operator.main import main

if __name__ == "__main__":
    sys.exit(main())
