"""Writes the JSON Schemas beside this module: python -m hybridjobs.schemas."""

from pathlib import Path

from hybridjobs.schemas.documents import DOCUMENTS, schema_text

for name in DOCUMENTS:
    Path(__file__).with_name(f"{name}.json").write_text(schema_text(name))
