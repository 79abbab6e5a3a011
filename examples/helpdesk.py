"""Several skills behind one address: a router, a direct answer, files, artifacts, a refusal and a sign-in."""

from dragoman import Agent, Part, Reply, Turn
from dragoman.agents import Incoming

TICKETS: dict[str, str] = {}  # the desk's own system, by whatever key its callers choose

agent = Agent("Help desk", description="Answers, exports and escalates.", serialize="context")


@agent.router
def choose(incoming: Incoming) -> str:
    """Messages that name no skill in metadata.skill: files are kept, questions answered, the rest escalated."""
    if incoming.files:
        return "keep"
    return "hours" if incoming.text.endswith("?") else "escalate"


@agent.skill(direct=True)
async def hours(turn: Turn) -> str:
    """Tells the opening hours: a Message at once, no task."""
    return "We are open from 9 to 17."


@agent.skill
async def keep(turn: Turn) -> Reply:
    """Keeps files and lists them."""
    rows = [f"{file.filename},{len(file.raw) if isinstance(file.raw, bytes) else 'linked'}" for file in turn.files]
    await turn.artifact("inventory", Part(raw="\n".join(rows).encode(), filename="files.csv", media_type="text/csv"))
    return Reply(f"Kept {len(rows)} file(s).")


@agent.skill(on_restart="rerun")
async def escalate(turn: Turn) -> str:
    """Opens a ticket, once the caller signed in."""
    if not turn.text:
        await turn.reject("Say what the trouble is.")
    if not turn.principal.id:
        await turn.require_auth("Sign in at https://desk.example/login, then send any message here.")
    ticket = await turn.step("ticket", open_ticket, turn.text)
    return f"Ticket {ticket} is open."


async def open_ticket(trouble: str, *, step_id: str) -> str:
    """`step_id` is the same when this has to run again after a crash, so no trouble gets two tickets."""
    return TICKETS.setdefault(step_id, f"T-{len(TICKETS) + 1}")
