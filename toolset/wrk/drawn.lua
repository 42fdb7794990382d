-- Sends requests drawn at random from a file: `wrk … -s drawn.lua URL -- FILE SEED`. In the file, each request follows
-- a line with the request's length in bytes.

dofile((debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "report.lua")

local threads = 0

function setup(thread)
  threads = threads + 1
  thread:set("number", threads)
end

init = function(args)
  requests = {}
  local file = assert(io.open(args[1], "rb"))
  local length = file:read("*n")
  while length do
    file:read(1)
    requests[#requests + 1] = file:read(length)
    length = file:read("*n")
  end
  file:close()
  math.randomseed(tonumber(args[2]) + number)
end

request = function()
  return requests[math.random(#requests)]
end
