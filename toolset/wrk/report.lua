-- Shows the result of a run as one JSON line, so that nobody scrapes a screen. For any request: it defines done() alone.

local percentiles = { 50, 75, 90, 95, 99, 99.9, 99.99 }

-- latency(i) walks from the minimum to the i-th distinct value each time, so that dumping all of them costs their number
-- times the range; beyond this product the dump would take seconds, and the histogram is left out.
local affordable = 4e8

local function histogram(latency)
  local entries = {}
  local distinct = #latency
  if distinct * (latency.max - latency.min) > affordable then return entries end
  for i = 1, distinct do
    local value, count = latency(i)
    entries[#entries + 1] = string.format("[%d,%d]", value, count)
  end
  return entries
end

function done(summary, latency, requests)
  local points = {}
  for _, p in ipairs(percentiles) do
    points[#points + 1] = string.format('"%s":%d', p, latency:percentile(p))
  end
  local errors = summary.errors
  local least = #latency > 0 and latency.min or 0  -- of no response it is the largest number that there is
  io.write(string.format(
    '{"duration_us":%d,"requests":%d,"bytes":%d,"cpu_seconds":%.6f,' ..
    '"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d},' ..
    '"latency_us":{"mean":%.3f,"stdev":%.3f,"min":%d,"max":%d,"percentiles":{%s},"histogram":[%s]}}\n',
    summary.duration, summary.requests, summary.bytes, os.clock(),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout,
    latency.mean, latency.stdev, least, latency.max,
    table.concat(points, ","), table.concat(histogram(latency), ",")))
end
