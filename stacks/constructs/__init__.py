"""The parts that the stacks are made of, one construct a file."""
