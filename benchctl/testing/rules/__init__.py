"""The rules of the contract, and what tries a plugin by them."""
