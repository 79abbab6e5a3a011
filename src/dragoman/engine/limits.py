"""What the engine bounds, with its defaults. Every one answers with a clear error when it is reached."""

from msgspec import Struct

from dragoman.ports import Tally


class Limits(Struct, frozen=True, kw_only=True):
    running: int = 10_000  # turns at once in this process
    held: int = 1_000  # questions that keep a handler waiting in memory
    inbox: int = 8  # messages waiting for a working task
    tasks_per_caller: int = 5_000  # unfinished ones of one owner, parked ones too; 0: any number
    bytes_per_caller: int = 10 * 1024**3  # of all tasks kept of one owner; 0: any number
    hooks: int = 16  # push configurations of one task
    hooks_per_caller: int = 10_000  # of all tasks of one owner; 0: any number
    buffer_facts: int = 256  # emissions of one turn on their way to the store
    buffer_bytes: int = 1_048_576
    tail_facts: int = 512  # recent facts of a live task kept for its readers
    tail_bytes: int = 262_144
    span_facts: int = 512  # facts between checkpoints: what a read folds at most
    span_bytes: int = 262_144
    brief_facts: int = 32  # a finished task with fewer facts since its last checkpoint needs no other
    brief_bytes: int = 16_384
    snapshot_bytes: int = 1_048_576  # above it a stream's first frame leaves artifact bodies out
    whole_bytes: int = 65_536  # a finished task up to this size is kept as one piece
    cached_tasks: int = 1_000
    cached_bytes: int = 33_554_432
    cache_ms: int = 3_600_000
    page_bytes: int = 33_554_432  # a list's page ends with the task that makes it this large
    batch: int = 256  # entries a reader is handed at a time
    block_ms: int = 250  # a handler that keeps the event loop to itself for longer is reported
    hold_ms: int = 0  # longest a blocking send waits; 0: as long as its client stays
    parked_ms: int = 30 * 86_400_000  # a question nobody answers fails the task after this
    retention_ms: int = 86_400_000  # finished tasks are deleted after this
    sweep_ms: int = 300_000
    lease_ms: int = 30_000

    @property
    def most(self) -> Tally:
        """What one owner may have."""
        return Tally(self.tasks_per_caller, self.bytes_per_caller)
