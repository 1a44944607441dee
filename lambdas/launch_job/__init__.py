"""Answers the custom resource of a hybrid job: Create, Update and Delete."""
