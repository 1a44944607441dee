"""Hybrid quantum jobs on Amazon Braket as infrastructure as code."""
