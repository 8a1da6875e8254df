"""`python3 -m stayer_evaluator.episode`: the recorder."""

import sys

from stayer_evaluator.episode.main import main

sys.exit(main())
