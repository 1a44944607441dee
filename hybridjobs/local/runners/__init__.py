"""Runners execute a job as the Braket service would: one interface, one module for each way to isolate it."""
