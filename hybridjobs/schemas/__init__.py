"""JSON Schemas of what a stage publishes: `<name>-<version>.json` here and below `schemas/` in the job bucket."""

from pathlib import Path
from typing import Final

SCHEMA_FILES: Final = tuple(sorted(Path(__file__).parent.glob("*.json")))
