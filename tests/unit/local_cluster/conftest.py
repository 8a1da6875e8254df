"""Makes the cluster's own package importable: it is a tool, not part of the distribution."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "hack" / "local-cluster"))
