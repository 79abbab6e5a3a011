"""Every row of the table is a scenario: who takes part, how one is measured once, and what is said of it all."""

from bench.scenarios.callers import AUTH
from bench.scenarios.crowds import IDLE, TICK
from bench.scenarios.flood import FLOOD
from bench.scenarios.logs import BLOB, LIST, REPLAY
from bench.scenarios.scenario import Scenario
from bench.scenarios.starts import FIRST, START
from bench.scenarios.throughput import DIALECTS, FULL, GET, NAP, SEND, STREAM
from bench.scenarios.webhooks import DRAIN, HANG

ALL: tuple[Scenario, ...] = (
    SEND,
    FULL,
    NAP,
    STREAM,
    GET,
    FIRST,
    IDLE,
    START,
    TICK,
    REPLAY,
    LIST,
    BLOB,
    DIALECTS,
    HANG,
    DRAIN,
    FLOOD,
    AUTH,
)
SCENARIOS = {scenario.name: scenario for scenario in ALL}
