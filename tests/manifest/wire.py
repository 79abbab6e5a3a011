"""The checklist of protocol 1.0: every MUST (`must`) and SHOULD (`should`) of its specification, by number.

Where 0.3 promises the same, the test that proves it speaks both.
"""

from tests.manifest.requirement import Pending, Requirement

_BINDING = "a duty of whoever defines a binding of their own; we serve the standard ones"
_OPERATOR = "a duty of whoever runs a deployment: certificates and proxies stand in front of us"
_CALLER = "a duty of callers' own programs: nothing a server sends or a library does can show it"
_RECEIVER = "a duty of the program that receives webhooks"


class _Book:
    """Counts as it is written, so that no number is skipped or given twice."""

    def __init__(self) -> None:
        self.entries: list[Requirement] = []

    def must(self, number: int, text: str, pending: Pending = "", elsewhere: str = "") -> None:
        assert number == len(self.entries) + 1, f"W-{number:03} is out of order"
        self.entries.append(Requirement(f"W-{number:03}", text, pending, elsewhere))

    should = must


_book = _Book()
must, should = _book.must, _book.should

# --- operations

must(1, "Sending a message answers with one task or with one message, never with both and never with neither.")
must(2, "A message to a completed, failed, canceled or rejected task is refused as an unsupported operation.")
must(3, "A message that names a task nobody made, or one the caller may not see, is refused as task not found.")
must(4, "A part of a media type the agent does not take is refused as content type not supported.")
must(5, "Sending a message in the streaming operation opens a stream of events.")
must(6, "A stream that begins with a message holds nothing else and closes at once.")
must(7, "Any other stream begins with the task, and all that follows are status and artifact updates.")
must(8, "A stream closes once its task has ended.")
must(9, "Progress and pieces of the result arrive while the agent works, not only at the end.")
must(10, "Getting a task tells its status and artifacts as they are now; an unknown one is not found.")
must(11, "Unless a list is asked for artifacts, none of its tasks has that member, not even an empty one.")
should(12, "A list asked for artifacts has that member on every task, empty where there are none.")
must(13, "Every page of a list has a token for the next one; it is empty on the last.")
must(14, "A list shows what its caller may see and nothing else.")
must(15, "Pages follow a cursor: tasks that appear meanwhile neither repeat nor hide any.")
must(16, "Lists are ordered by the time of the status, newest first.")
must(17, "A page has 50 tasks unless 1 to 100 are asked for; any other number is refused.")
must(18, "A list since some time has the tasks whose status is of that time or later.")
must(19, "Cancelling answers the task; an unknown one is not found, and one that ended otherwise is not cancelable.")
must(20, "Subscribing to a task that has ended is an unsupported operation.")
must(21, "A subscription begins with the task as it is.")
must(22, "A subscription closes once its task has ended.")
must(23, "A registered webhook is called with the events of its task, each a stream response in JSON.")
must(24, "A registered webhook lasts until its task has ended or it is deleted.")
must(25, "Registering a webhook answers with the id it was given.")
must(26, "Getting a webhook tells its address and settings.")
must(27, "Getting a webhook that does not exist, or is not the caller's, is not found.")
must(28, "Listing webhooks tells every one the task has.")
must(29, "Nothing is sent to a webhook once it is deleted.")
must(30, "Deleting a webhook twice has the outcome of deleting it once.")
must(31, "The extended card is asked for with the credentials of a scheme the public card names.", "client")
should(32, "An extended card takes the place of the public one for the rest of the session.", "client")
must(
    33,
    "Without the capability, the extended card is an unsupported operation; with it but without one, not configured.",
)
must(34, "A send that waits, which is the default, returns once its task has ended or waits for somebody.")
must(35, "What it returns is the latest state, with all artifacts and what the status says.")
must(36, "A send told not to wait returns as soon as there is a task.")
must(37, "Not waiting changes nothing for streams, direct messages and webhooks.")
should(38, "Asked for no history, a task has no such member.")
must(39, "Asked for some history, a task has at most that many messages, the most recent ones.")
should(40, "The output types a caller takes reach the agent.")
must(41, "A custom binding says how service parameters travel.", elsewhere=_BINDING)
must(42, "Reading changes nothing, and cancelling again has the effect of cancelling once.")

# --- errors

must(43, "Every failure answers with a fitting error that says what to do about it.")
must(44, "A request whose credentials are missing or wrong is refused.")
should(45, "That refusal carries a challenge.")
should(46, "It names the scheme that is needed.")
must(47, "A caller that may not do something is told so with an authorization error.")
should(48, "It names the scope that is missing, and nothing about what the caller may not see.")
must(49, "Nothing tells whether something exists that the caller may not see.")
must(50, "All parameters are checked before anything is done.")
should(51, "The error names the parameters that are wrong, and why.")
should(52, "It hints at what would be right.")
must(53, "What does not exist, or is not the caller's, is not found.")
should(54, "The two are not to be told apart.")
should(55, "Failures that pass have other codes than those that last.")
should(56, "Errors of the system are logged.")
must(57, "Every error has a code for machines and a message for people.")
must(58, "Every detail of an error says its type, one of google.rpc where one fits.")
must(59, "Code, message and details mean the same over every binding.")
must(60, "Without the capability, every operation on webhooks is refused as push notifications not supported.")
must(61, "Without the capability, both streaming operations are unsupported.")
must(62, "Without the capability, asking for the extended card is unsupported.")
must(63, "A caller that does not name an extension the card requires is refused for that.")
should(64, "Optional capabilities are looked up on the card before they are used.", "client")

# --- conversation

must(65, "A context the server made is told in the task or message.")
must(66, "A context of the caller's that is refused is an error, and no other takes its place.")
should(67, "No context is made up by a client that does not know how its server takes it.", "client")
should(68, "Ids made by a server are text without a meaning to its clients.", "client")
should(69, "Everything in one context is one conversation.")
should(70, "How long contexts last is documented.")
must(71, "Every new task has an id of its own.")
must(72, "The id is in the task that is answered.")
must(73, "A task named in a message is one that exists.", elsewhere=_CALLER)
must(74, "A message that names an unknown task is refused as task not found.")
must(75, "A message that names only its task is in that task's context.")
must(76, "A message that names a task and another context is refused.")
should(77, "Follow-ups can refer to earlier tasks.", "client")
should(78, "Tasks a message refers to reach the agent.")
should(79, "A new task in a context knows the conversation so far.")

# --- delivery

must(80, "Events arrive in the order they happened.")
must(81, "Every open stream of a task gets every event.")
must(82, "All of them get the same events in the same order.")
must(83, "Closing one stream changes nothing for the others or the task.")
must(84, "Webhooks are plain HTTP with the JSON of 1.0, whatever binding registered them.")

# --- versioning

should(85, "Versions are written without patch digits.")
must(86, "Patch digits make no difference to which version is meant.")
must(87, "Every request names its version.", "client")
must(88, "A request is read and answered as the version it names says.")
must(89, "A version that is not served is refused as not supported.")
must(90, "A request that names no version is one of 0.3.")
must(91, "Clients are helped to agree on binding and version, and do not fall back unseen.", "client")

# --- messages, data model, extensions

should(92, "Results are artifacts, not messages.")
must(93, "Messages are not relied on to be delivered.", elsewhere=_CALLER)
must(94, "Messages are not relied on to stay in the history.", elsewhere=_CALLER)
must(95, "Every binding shows the same data.")
must(96, "Tasks have an id and a status, artifacts ids of their own, messages and artifacts at least one part.")
must(97, "A part has exactly one content.")
must(98, "A webhook is called with the credentials it was registered with.")
must(99, "A webhook is answered with a success.", elsewhere=_RECEIVER)
should(100, "A webhook that comes twice can be told and counts once.")
must(101, "A webhook for a task nobody expects is dropped.", elsewhere=_RECEIVER)
should(102, "Who sends a webhook can be verified.")
must(103, "Every webhook is attempted at least once.")
should(104, "An attempt ends after 10 to 30 seconds.")
should(105, "The URI of an extension has its version in it.", elsewhere="a duty of whoever defines an extension")
should(106, "An extension that is asked for and not known is ignored, unless the card requires it.")
must(107, "Another version of an extension never stands in for the one asked for.")
should(108, "Extensions that took effect are named in the answer's header.")

# --- bindings

must(109, "Every binding has the same operations with the same results and the same errors.")
must(110, "The card names every binding.")
should(111, "Another binding is tried where one fails.", "client")
must(112, "Errors have the codes and statuses of the specification's table.")
must(113, "A custom binding has codes that mean the same.", elsewhere=_BINDING)
must(114, "Names of members are in camelCase.")
must(115, "Enums are written by their names.")
must(116, "Times are ISO 8601 in UTC.")
should(117, "They have milliseconds.")
must(118, "They are read and written without loss.")
must(119, "They have no other offset than Z.")
must(120, "Required members are there, and a request without one is refused.")
must(121, "Required arrays are not empty, and a request with an empty one is refused.")
should(122, "Unknown members are ignored.")
should(123, "A custom binding is named by a URI.", elsewhere=_BINDING)

# --- authentication and authorization within a task

must(124, "Production traffic is encrypted.", elsewhere=_OPERATOR)
should(125, "The certificate of a server is validated.", "client")
must(126, "Every request is authenticated as the card says.")
should(127, "A failed authentication has the code of its binding.")
should(128, "Its answer carries a challenge.")
must(129, "An authorization that is needed meanwhile is asked for by a task.")
must(130, "That task is then in the state auth-required.")
must(131, "A status message says what is needed.")
must(132, "The credential comes by another way than the protocol, and the task goes on when it did.")
should(133, "Open streams stay open over auth-required when the credential comes by another way.")
should(134, "Messages to a task are taken while it is in auth-required.")
should(135, "An agent that calls others passes their need for authorization up.", "client")
should(136, "Without an open stream, a client subscribes, registers a webhook or asks again.", "client")
should(137, "Credentials travel over a protected channel.", elsewhere=_OPERATOR)
should(138, "Credentials within the protocol belong to the agent that asked.", elsewhere=_CALLER)
should(139, "What a caller sends to a task is read by no other caller.")
must(140, "That a task is in auth-required gives nobody a right.")
must(
    141,
    "How far an authorization reaches is for its issuer to say.",
    elsewhere="a duty of whoever issues the credential; we neither issue nor keep any",
)
must(142, "The credential of one message counts for no later one.")

# --- card

must(143, "There is a card.")
must(144, "It declares the protocols that are spoken.")
should(145, "It lists every combination of address, binding and version, preferred ones first.")
must(146, "Every address on it answers in the binding it is listed with.")
must(147, "The first interface a client supports is used, at its address.", "client")
must(148, "The tenant of that interface is sent, or none.", "client")
must(149, "A signature is made over canonical JSON.")
must(150, "Optional members that are not set are not signed.")
must(151, "Optional members that are set are signed, default or not.")
must(152, "Required members are signed, empty or not.")
must(153, "Other members with their default value are not signed.")
must(154, "The signatures themselves are not signed.")
must(155, "The protected header names algorithm and key, and the type JOSE.")
must(156, "Signatures are verified by the same steps.")
should(157, "A card is trusted after at least one signature was verified.")
should(158, "Keys come over protected channels.", "client")
must(159, "Keys that expired or were revoked are not used.")
should(160, "Cards say how long they may be kept.")
should(161, "Cards have an entity tag.")
should(162, "Clients keep cards as HTTP says.", "client")
should(163, "Cards kept too long are asked for again, with a condition.", "client")

# --- JSON-RPC

must(164, "Service parameters are sent as headers.", "client")
must(165, "Names of headers are matched whatever their case.")
must(166, "Requests are JSON-RPC 2.0.", "client")
must(167, "The media type is application/json, methods have Pascal names, streams are server-sent events.")
must(168, "Every object in an error's data says its type: what went wrong and which fields.")
must(169, "Errors of A2A are between -32001 and -32099, all others the standard ones.")

# --- gRPC

must(170, "Service parameters are sent as metadata.", "client")
must(171, "They are read from there.", "gRPC")
should(172, "Those that are needed are checked.", "gRPC")
must(173, "Errors carry their reason and domain in the status details.", "gRPC")

# --- HTTP+JSON

should(174, "The media type is application/a2a+json for those who speak it.")
must(175, "Service parameters are sent as headers.", "client")
must(176, "What a read needs is sent in path and query.", "client")
must(177, "Names in the query are in camelCase.")
must(178, "What needs nested parameters is a POST.")
must(179, "Values in the query are percent-encoded.", "client")
must(180, "Every detail of an error says its type, and names the fields that are wrong.")
must(181, "Errors of A2A carry their reason and domain.")
should(182, "Events are not reordered.")

# --- custom bindings

must(183, "A custom binding has all operations, the data model, and documentation.", elsewhere=_BINDING)
must(184, "It maps messages, times, bytes and enums.", elsewhere=_BINDING)
must(185, "It says how service parameters travel.", elsewhere=_BINDING)
must(186, "It maps every error and keeps the details.", elsewhere=_BINDING)
must(187, "It says on the card when it has no streams.", elsewhere=_BINDING)
must(188, "It says how authentication works.", elsewhere=_BINDING)
must(189, "It is on the card by its URI.", elsewhere=_BINDING)
should(190, "It is tested against the standard ones.", elsewhere=_BINDING)

# --- security

must(191, "Results stay within what the caller may see.")
must(192, "Every operation checks that.")
must(193, "Lists do so also without a filter.")
must(194, "Getting, listing, cancelling, subscribing and webhooks do too.")
must(195, "They do so before any query that could tell that something exists.")
should(196, "What callers may see is documented.")
must(197, "Webhooks carry the credentials they were registered with.")
should(198, "They time out, and are tried again after growing pauses.")
should(199, "They do not reach private, loopback or link-local addresses.")
must(200, "A receiver checks who sends and answers with a success.", elsewhere=_RECEIVER)
should(201, "A receiver checks the task, takes repeats, limits rates and is encrypted.", elsewhere=_RECEIVER)
should(202, "Addresses of webhooks are encrypted ones, and their tokens are secrets.")
must(203, "The extended card is for callers that logged in by a declared scheme.")
must(204, "What only some may see is shown after a check.")
should(205, "The extended card says how long it may be kept, and by whom.")
should(206, "Old versions of TLS are off.")
must(207, "All input is checked, in size, in shape and in type.")
must(208, "Credentials are kept as secrets.")
should(209, "Failed authentications are logged and limited.")
should(210, "Security events are logged.")
must(211, "Nothing secret is in the log.")
should(212, "Callers that ask too often are told so.")
must(
    213,
    "Data protection law is observed.",
    elsewhere="a duty of whoever runs a deployment; retention, which it needs, is a setting of ours",
)
must(214, "A custom binding says how it treats credentials.", elsewhere=_BINDING)
must(215, "HTTP+JSON is UTF-8, and checked against the schema.")
must(216, "Addresses of files in messages are not fetched unguarded.")
must(217, "History and artifacts are shown to nobody else.")
must(218, "A version is sent as two numbers with a point between.", "client")
must(219, "The card is at its well-known address, without secrets.")
should(220, "Signatures are verified where there are any.", "client")
must(
    221,
    "Derived schemas are made from the protocol's definition.",
    elsewhere="a duty of the specification's own project",
)

REQUIREMENTS: tuple[Requirement, ...] = tuple(_book.entries)
