-- What wrk sends: the requests of a file, one after the other and round again, over all its connections.
-- The file holds each request after its length as four bytes, the highest first.
--
-- What was sent, and how much of it are adds (PUT), is counted here, because wrk itself knows only answers.
-- The file stays outside of Lua's memory, and a request becomes a string only when it is sent. Lua compares a new string
-- with all others in memory that have the same hash, as requests of the same length have: 50,000 took half a minute.

local ffi = require("ffi")
ffi.cdef "void *malloc(size_t); void *fopen(const char *, const char *); size_t fread(void *, size_t, size_t, void *);"

local threads = {}
local bytes
local size
local place = 0
local was_asked = false
sent = 0
adds_sent = 0

function setup(thread)
   threads[#threads + 1] = thread
end

function init(args)
   local file = assert(io.open(args[1], "rb"))
   size = file:seek("end")
   file:close()
   bytes = ffi.cast("uint8_t *", ffi.C.malloc(size))
   assert(ffi.C.fread(bytes, 1, size, ffi.C.fopen(args[1], "rb")) == size)
end

function request()
   local head = bytes + place
   local length = ((head[0] * 256 + head[1]) * 256 + head[2]) * 256 + head[3]
   local chosen = ffi.string(head + 4, length)
   if was_asked then
      sent = sent + 1
      if chosen:sub(1, 4) == "PUT " then adds_sent = adds_sent + 1 end
      place = (place + 4 + length) % size
   end
   was_asked = true  -- wrk asks once to see whether the request is well-formed, and does not send it
   return chosen
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
