"""From the records of ended jobs to what a person reads: rows, tables, files."""
