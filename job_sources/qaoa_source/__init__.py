"""Max-Cut by the quantum approximate optimisation algorithm (QAOA), as an Amazon Braket hybrid job."""
