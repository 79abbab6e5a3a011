"""The only place that wires: settings → store, bus, agents, engine, gateway, server."""
