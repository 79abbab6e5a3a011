"""CortexPrism: its page, sentence by sentence, and what its users try first.

`001-c…` are the things tried first, `001-d…` what we decided where the page leaves room.
"""

from tests.manifest.requirement import Requirement

REQUIREMENTS: tuple[Requirement, ...] = (
    # the server
    Requirement("001-1", "POST /a2a takes every method, as JSON-RPC 2.0 over HTTP"),
    Requirement("001-2", "GetAgentCard answers the card: name, skills, interfaces"),
    Requirement("001-3", "GetExtendedAgentCard is an alias of GetAgentCard"),
    Requirement("001-4", "SendMessage waits for the end and answers the task"),
    Requirement("001-5", "SendStreamingMessage answers with server-sent events"),
    Requirement("001-6", "GetTask answers a task by its id"),
    Requirement("001-7", "ListTasks lists the tasks"),
    Requirement("001-8", "CancelTask cancels a running task"),
    # states
    Requirement("001-9", "A task begins as TASK_STATE_WORKING"),
    Requirement("001-10", "It comes to TASK_STATE_COMPLETED"),
    Requirement("001-11", "Or to TASK_STATE_FAILED"),
    Requirement("001-12", "Or to TASK_STATE_CANCELED"),
    # streams
    Requirement("001-13", "A stream is text/event-stream of data: lines with JSON, ended by [DONE]"),
    Requirement("001-14", "The first frame is a response with the request's id and result.task"),
    Requirement("001-15", "Artifacts are told as TaskArtifactUpdateEvent with taskId, artifact, lastChunk"),
    Requirement("001-16", "States are told as TaskStatusUpdateEvent with taskId, status, final"),
    Requirement("001-17", "The last line is the bare [DONE]"),
    # configuration of the server
    Requirement("001-18", "enabled is false unless set; then nothing is served, and the reason is said"),
    Requirement("001-19", "server.port is the port listened on"),
    Requirement("001-20", "server.bindAddress is the address listened on"),
    Requirement("001-21", "server.allowedOrigins are the pages that get CORS headers"),
    # limits
    Requirement("001-22", "1,000 tasks are kept"),
    Requirement("001-23", "500 conversations are kept"),
    Requirement("001-24", "A task is kept for an hour"),
    Requirement("001-25", "What is over is cleaned up every 5 minutes"),
    # the client
    Requirement("001-26", "fetchAgentCard finds the card below an endpoint", pending="client"),
    Requirement("001-27", "sendMessage sends by SendMessage", pending="client"),
    Requirement("001-28", "sendStreamingMessage streams, text to onChunk and states to onStatus", pending="client"),
    Requirement("001-29", "getTask reads a remote task", pending="client"),
    Requirement("001-30", "listTasks lists remote tasks, page by page", pending="client"),
    Requirement("001-31", "cancelTask cancels a remote task", pending="client"),
    Requirement("001-32", "A call ends after 120 seconds unless told otherwise", pending="client"),
    Requirement("001-33", "Cortex's own client does all of that with our server"),
    # the card
    Requirement("001-34", "A card is made of a tool registry, a skill of each tool"),
    Requirement("001-35", "A skill's id is the tool's name"),
    Requirement("001-36", "Its name is the tool's in words that begin with capitals"),
    Requirement("001-37", "Its description is the tool's"),
    Requirement("001-38", "Its tags are the tool's capabilities"),
    Requirement("001-39", "Its examples are ready for common tools: file_read, shell, web_search and others"),
    Requirement("001-40", "Without tools there are code-generation, debugging, code-review, architecture and search"),
    Requirement("001-41", "The card advertises streaming: true and stateTransitionHistory: true"),
    Requirement("001-42", "It has one interface with the protocol json-rpc, at /a2a"),
    # remote agents as tools
    Requirement("001-43", "A remote agent becomes a tool called a2a_<agentName>", pending="tool wrapper"),
    Requirement("001-44", "It takes message, required, and contextId, optional, both strings", pending="tool wrapper"),
    Requirement("001-45", "Its capability is network:fetch", pending="tool wrapper"),
    Requirement("001-46", "It keeps the card after the first fetch", pending="tool wrapper"),
    Requirement("001-47", "It drops the card on errors, which are a retryable A2A_ERROR", pending="tool wrapper"),
    # configuration, addresses
    Requirement("001-48", "The page's JSON configuration is read as it stands"),
    Requirement("001-49", "remoteAgents name each agent's endpoint, card, token and timeout"),
    Requirement("001-50", "A remote agent is called as it is configured", pending="client"),
    Requirement("001-51", "GET /.well-known/agent-card.json answers the card"),
    Requirement("001-52", "GET /api/a2a/agent-card.json answers the same"),
    # command line
    Requirement("001-53", "mcp a2a card shows the card", pending="command line"),
    Requirement("001-54", "mcp a2a skills lists the skills", pending="command line"),
    Requirement("001-55", "mcp a2a remote lists the remote agents", pending="command line"),
    # swarm
    Requirement("001-56", "A swarm's directives travel as SendMessage calls", pending="swarm"),
    Requirement("001-57", "A message with metadata.swarmKind goes to the handler of directives", pending="swarm"),
    Requirement("001-58", "spawn_agent, execute_task, query_resources, forward_message, sync_state", pending="swarm"),
    # tried first
    Requirement("001-c1", "Both card paths answer the same, with json-rpc at an address that ends in /a2a"),
    Requirement("001-c2", "GetAgentCard and GetExtendedAgentCard answer the same, with A2A-Version: 1.0"),
    Requirement("001-c3", "A send of text completes, with the text in an artifact and two messages of history"),
    Requirement("001-c4", "A stream has result.task, an artifact with lastChunk, a final status, [DONE]"),
    Requirement("001-c5", "A task is read, listed page by page, and cancelled so that its work really stops"),
    Requirement("001-c6", "Of two sends with one context the second knows the first and what was answered"),
    Requirement("001-c6b", "So do streams"),
    Requirement("001-c7", "After 1,001 tasks the oldest is gone, and so is one that is over for an hour"),
    Requirement("001-c8", "The commands print what the page says", pending="command line"),
    Requirement("001-c9", "A wrapped agent that dies is an A2A_ERROR until it is back", pending="tool wrapper"),
    Requirement("001-c10", "Directives are answered, and an unknown kind fails", pending="swarm"),
    # decided
    Requirement("001-d1", "A result is Cortex's bare task and 1.0's wrapped one at once"),
    Requirement("001-d2", "Superset frames are official responses with the page's members; both clients read them"),
    Requirement(
        "001-d3", "The context is taken from the message, its metadata or beside it; differing ones are -32602"
    ),
    Requirement("001-d4", "Configuration is heeded: blocking, historyLength, idempotencyKey, acceptedOutputModes"),
    Requirement("001-d5", "configuration.pushNotificationConfig registers a webhook"),
    Requirement("001-d6", "The three states the page leaves out are wired: input required, auth required, rejected"),
    Requirement("001-d7", "A finished task is not cancelled: -32002, and it stays as it was"),
    Requirement("001-d8", "Errors have the official numbers and status 200; by setting, Cortex's 404 and 500"),
    Requirement("001-d9", "Every answer says A2A-Version: 1.0, errors and cards too"),
    Requirement("001-d10", "A list is of everything not yet expired, whole, by context and state, page by page"),
    Requirement("001-d11", "A tenant is a boundary: its tasks are found with it and not without"),
    Requirement("001-d12", "The extended card is the public one, for everybody"),
    Requirement("001-d13", "What runs or waits for somebody is never evicted; a full memory refuses new work"),
    Requirement("001-d14", "A durable store keeps what memory would forget, for a day"),
    Requirement("001-d15", "A forgotten conversation keeps its tasks, and begins anew under its id"),
    Requirement("001-d16", "bindAddress counts as the wish to be reached, and is warned of"),
    Requirement("001-d17", "Unknown keys of the configuration are errors that name the key"),
    Requirement("001-d18", "The profile listens on 4220 and names /a2a first"),
    Requirement("001-d19", "A tool without capabilities has tags all the same, as 1.0 demands"),
    Requirement("001-d21", "Errors carry the name of what they are beside the number"),
    Requirement("001-d20", "What is answered without a task is a completed task for Cortex's clients"),
)
