"""The smallest agent. Serve it with `dragoman serve examples/hello.py`."""

from dragoman import Agent, Turn

agent = Agent("Greeter", description="Greets whoever says a name.")


@agent.skill
async def greet(turn: Turn) -> str:
    """Greets by name."""
    return f"Hello, {turn.text}!"
