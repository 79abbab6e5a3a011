"""CortexPrism: its page, sentence by sentence, and what its users try first.

`001-c…` are the things tried first, `001-d…` what we decided where the page leaves room.
"""

from tests.manifest.requirement import Requirement

REQUIREMENTS: tuple[Requirement, ...] = (
    Requirement("001-18", "enabled is false unless set; then nothing is served, and the reason is said"),
    Requirement("001-19", "server.port is the port listened on"),
    Requirement("001-20", "server.bindAddress is the address listened on"),
    Requirement("001-21", "server.allowedOrigins are the pages that get CORS headers"),
    Requirement("001-48", "The page's JSON configuration is read as it stands"),
    Requirement("001-49", "remoteAgents name each agent's endpoint, card, token and timeout"),
    Requirement("001-50", "A remote agent is called as it is configured", pending="client"),
    Requirement("001-d16", "bindAddress counts as the wish to be reached, and is warned of"),
    Requirement("001-d17", "Unknown keys of the configuration are errors that name the key"),
)
