"""What starts the processes of these tests is a module next to them."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
