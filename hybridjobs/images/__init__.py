"""`hybridjobs image`: builds, checks and pushes job images without a deployment."""
