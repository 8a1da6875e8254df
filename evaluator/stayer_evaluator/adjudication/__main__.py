"""`python3 -m stayer_evaluator.adjudication`: the adjudicator."""

import sys

from stayer_evaluator.adjudication.program import main

sys.exit(main())
