"""What the terminal shows once the server listens: where the card is, and commands that work when pasted."""

from collections.abc import Iterable

from dragoman.app.settings import Settings

SEND = """  curl -s {base}/message:send -H 'content-type: application/json' {login}\\
    -d '{{"message":{{"messageId":"1","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}'"""

STREAM = """  curl -sN {base}/message:stream -H 'content-type: application/json' {login}\\
    -d '{{"message":{{"messageId":"2","role":"ROLE_USER","parts":[{{"text":"{text}"}}]}}}}'"""

ANSWER = """  task=$(curl -s {base}/message:send -H 'content-type: application/json' {login}\\
    -d '{{"message":{{"messageId":"3","role":"ROLE_USER","parts":[{{"text":"ask"}}]}}}}' \\
    | tee /dev/stderr | sed 's/.*"task":{{"id":"\\([^"]*\\)".*/\\1/'); echo
  curl -s {base}/message:send -H 'content-type: application/json' {login}\\
    -d '{{"message":{{"messageId":"4","taskId":"'$task'","role":"ROLE_USER","parts":[{{"text":"blue"}}]}}}}'"""


LOGIN = '-H "authorization: Bearer $TOKEN" '
"""For whoever logs in by something else, a hint where it goes."""


def banner(
    url: str, settings: Settings, slugs: Iterable[str] = (), *, demo: bool = False, guarded: bool = False
) -> str:
    """`url` is where we listen; callers may know us by another one. `guarded`: they have to log in."""
    base = (settings.server.public_url or url).rstrip("/")
    login = LOGIN if guarded else ""
    lines = ["", f"Card   {base}/.well-known/agent-card.json"]
    lines += [f"       {base}/agents/{slug}/.well-known/agent-card.json" for slug in slugs if slug]
    lines += [f"Tasks  {settings.store.url}"]
    lines += ["Calls  need credentials; $TOKEN stands for a bearer token of yours", ""] if login else [""]
    if demo:
        lines += ["Say something:", SEND.format(base=base, login=login, text="hello"), ""]
        lines += ["Watch a stream:", STREAM.format(base=base, login=login, text="stream 5"), ""]
        lines += ["Be asked, and answer:", ANSWER.format(base=base, login=login), ""]
    else:
        lines += ["Try it:", SEND.format(base=base, login=login, text="hello"), ""]
    return "\n".join(lines)
