"""Longhaul as it is installed: everything below one folder, so that nothing of it collides.

The packages are imported by the names that they have in the checkout (`activities`, `cli`, …). They
are installed beside this file and not next to other distributions, whose names for modules may be
the same. `import longhaul_agents` puts them in reach, before any others of the same names.
"""

import sys
from pathlib import Path

PACKAGES = Path(__file__).parent / "packages"
"""Not there in a checkout, where the packages are at the top."""

if PACKAGES.is_dir() and str(PACKAGES) not in sys.path:
    sys.path.insert(0, str(PACKAGES))
