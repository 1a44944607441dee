"""The Amazon Braket endpoint of the embedded cloud: the service's own API on a loopback address."""
