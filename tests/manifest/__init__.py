"""What we promise, one module per text that promises it. `tests/requirements.py` holds all of it to the tests."""
