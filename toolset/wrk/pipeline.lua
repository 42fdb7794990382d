-- Pipelines requests like TechEmpower's plaintext test: `wrk … -s pipeline.lua URL -- 16` sends 16 at a time.

dofile((debug.getinfo(1, "S").source:match("^@(.*/)") or "./") .. "report.lua")

init = function(args)
  local depth = tonumber(args[1]) or 1
  local request = wrk.format()
  batch = string.rep(request, depth)
end

request = function()
  return batch
end
