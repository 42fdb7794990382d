-- Sends requests in pipelines: `wrk … -s pipeline.lua URL -- 16` writes 16 at a time, as TechEmpower's plaintext test does.

dofile((debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "report.lua")

init = function(args)
  local depth = tonumber(args[1]) or 1
  local request = wrk.format()
  batch = string.rep(request, depth)
end

request = function()
  return batch
end
