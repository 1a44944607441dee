"""Starts the launches that wait in the ledger, in order, as far as the account's limits allow."""
