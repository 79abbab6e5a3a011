-- Sends the prepared requests again and again and reports what happened as one line of JSON.
--   wrk … -s load.lua URL -- HEADERS REQUESTS
-- HEADERS: a file of "Name: value" lines. REQUESTS: a file of "METHOD PATH BODY" lines, used in turn.

local prepared = {}
local turn = 0

function init(args)
  local headers = {}
  for line in io.lines(args[1]) do
    local name, value = line:match("^([^:]+): (.*)$")
    headers[name] = value
  end
  headers["Host"] = wrk.host .. ":" .. wrk.port
  for line in io.lines(args[2]) do
    local method, path, body = line:match("^(%S+) (%S+) ?(.*)$")
    if body == "" then body = nil end
    prepared[#prepared + 1] = wrk.format(method, path, headers, body)
  end
end

function request()
  turn = turn % #prepared + 1
  return prepared[turn]
end

function done(summary, latency, requests)
  local e = summary.errors
  io.write(string.format(
    '\nBENCH {"requests": %d, "microseconds": %d, "bytes": %d, "connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d, "p50": %d, "p99": %d}\n',
    summary.requests, summary.duration, summary.bytes, e.connect, e.read, e.write, e.status, e.timeout,
    latency:percentile(50), latency:percentile(99)))
end
