"""The only modules that talk to AWS: one class a service, its client handed in."""
