"""A dressed quantum circuit that learns to tell two classes apart, as an Amazon Braket hybrid job.

`train_single` trains in one process, `train_dp` on every GPU or CPU slot of every host; both run the same training.
"""
