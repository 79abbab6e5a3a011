"""Deletes in bounded steps, each a transaction of its own, so that the writer is never away for long."""

from dragoman.store.sqlite.reading import decode_head, encode
from dragoman.store.sqlite.statements import SQL, rows
from dragoman.store.sqlite.writer import Pen

# Rows of facts one step deletes, and free pages it gives back to the disk.
SLICE = 2_000
PAGES = 1_000


def bury(pen: Pen, before: int, limit: int) -> list[str]:
    """Take finished tasks out of sight, with their keys, hooks and counts. Their facts stay for `dig`."""
    lapsed = pen.connection.execute(SQL["lapsed"], (before, limit)).fetchall()
    these = (encode([n for n, *_ in lapsed]).decode(),)
    counts = [(*scope, state, -1, -decode_head(head).size) for _, _, *scope, state, head in lapsed]
    pen.write(
        [
            (SQL["bury"], these),
            (SQL["drop_keys_of_tasks"], these),
            (SQL["drop_deliveries_of_tasks"], these),
            (SQL["drop_hooks_of_tasks"], these),
            (SQL["drop_tasks"], these),
            (SQL["drop_checkpoints"], these),
            *((rows("add_counts", 1), values) for values in counts),
            (SQL["drop_empty_counts"], ()),
            (SQL["drop_old_replies"], (before,)),
        ],
        headroom=True,  # deleting is what makes room again
    )
    return [uid for _, uid, *_ in lapsed]


def dig(pen: Pen) -> bool:
    """Delete one slice of what was buried; whether there is more."""
    grave = pen.connection.execute(SQL["next_grave"]).fetchone()
    if grave is None:
        pen.connection.execute(f"PRAGMA incremental_vacuum({PAGES})").fetchall()
        return False
    pen.write([(SQL["drop_facts"], (*grave, SLICE)), (SQL["drop_segments_of"], (*grave, SLICE))], headroom=True)
    if not pen.connection.execute(SQL["is_empty"], grave * 2).fetchone()[0]:
        return True
    pen.write([(SQL["close_grave"], grave)], headroom=True)
    return True
