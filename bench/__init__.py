"""Measures dragoman beside its peers, in one run on one machine. `python -m bench`, from the repository root."""
