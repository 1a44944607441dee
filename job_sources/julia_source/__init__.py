"""Max-Cut QAOA in Julia in the image asset:julia, as an Amazon Braket hybrid job."""
