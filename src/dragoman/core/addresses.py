"""Which addresses outsiders may make us call. Pure: it judges what a resolver answered, and resolves nothing itself."""


def lane(url: str) -> str:
    """Which receiver a URL belongs to: its scheme, host and port. What waits for one waits in one lane."""
    scheme, _, rest = url.partition("://")
    for end in "/?#":
        rest = rest.partition(end)[0]
    return f"{scheme}://{rest}".lower()
