"""The embedded cloud: AWS on loopback, a Braket Jobs endpoint, and runners that really execute the jobs."""
