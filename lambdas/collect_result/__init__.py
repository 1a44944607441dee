"""Publishes what a hybrid job produced when it has ended, and repairs what an event missed."""
