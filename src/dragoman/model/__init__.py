"""Plain data in the specification's words. No I/O, no clock, no decisions."""
