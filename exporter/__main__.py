"""`python -m exporter`."""

from __future__ import annotations

import sys

from exporter.cli import main

sys.exit(main())
