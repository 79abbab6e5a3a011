"""Load, decide, append, ring; run turns; follow logs. Knows no dialect and no socket."""
