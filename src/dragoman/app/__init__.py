"""The only place that wires: settings → store, bus, agents, engine, gateway, server."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.app.mounting import asgi
    from dragoman.app.serving import serve

__all__ = ["asgi", "serve"]


def __getattr__(name: str) -> Any:
    """Late, because reading settings must not cost what serving does."""
    if name == "asgi":
        from dragoman.app.mounting import asgi

        return asgi
    if name == "serve":
        from dragoman.app.serving import serve

        return serve
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
