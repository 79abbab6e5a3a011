"""How every peer is served: the same uvicorn, loop and parser for all, no access log."""

import argparse

import uvicorn
from workload import BEHAVIOURS


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--behaviour", choices=BEHAVIOURS, default="echo")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--store", default="memory", help="memory, or the path of an SQLite file")
    parser.add_argument("--answer", default="", help="ceiling only: the file with the bytes to answer")
    return parser.parse_args()


def serve(app: object, port: int) -> None:
    uvicorn.run(
        app,  # type: ignore[arg-type]
        host="127.0.0.1",
        port=port,
        loop="uvloop",
        http="httptools",
        log_level="warning",
        access_log=False,
    )
