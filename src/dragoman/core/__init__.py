"""The pure middle: what follows from what. No I/O, no clock, no asyncio."""
