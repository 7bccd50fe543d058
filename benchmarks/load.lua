-- What wrk sends: the requests of a file, one after the other and round again, over all its connections.
-- The file holds each request after its length as four bytes, the highest first.
--
-- What was sent, and how much of it are adds (PUT), is counted here, because wrk itself knows only answers.

local threads = {}
local requests = {}
local is_add = {}
local place = 0
sent = 0
adds_sent = 0

function setup(thread)
   threads[#threads + 1] = thread
end

function init(args)
   local file = assert(io.open(args[1], "rb"))
   while true do
      local length = file:read(4)
      if not length then break end
      local a, b, c, d = length:byte(1, 4)
      local request = file:read(((a * 256 + b) * 256 + c) * 256 + d)
      requests[#requests + 1] = request
      is_add[#is_add + 1] = request:sub(1, 4) == "PUT "
   end
   file:close()
end

function request()
   if place == 0 then  -- wrk asks once to see whether the request is well-formed, and does not send it
      place = 1
      return requests[1]
   end
   local chosen = place
   place = place % #requests + 1
   sent = sent + 1
   if is_add[chosen] then adds_sent = adds_sent + 1 end
   return requests[chosen]
end

function done(summary, latency, _)
   local errors = summary.errors
   io.write(string.format(
      '\nFIGURES {"answers": %d, "seconds": %.6f, "bytes": %d, "sent": %d, "adds_sent": %d, "refused": %d, "broken": %d, '
         .. '"p50_us": %d, "p90_us": %d, "p99_us": %d}\n',
      summary.requests, summary.duration / 1e6, summary.bytes, threads[1]:get("sent"),
      threads[1]:get("adds_sent"), errors.status,
      errors.connect + errors.read + errors.write + errors.timeout,
      latency:percentile(50), latency:percentile(90), latency:percentile(99)))
end
