-- Shows the result of a run as one JSON line, so that nobody scrapes a screen. For any request: it defines done() alone.

function done(summary)
  local errors = summary.errors
  io.write(string.format(
    '{"duration_us":%d,"requests":%d,"bytes":%d,"cpu_seconds":%.6f,' ..
    '"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}}\n',
    summary.duration, summary.requests, summary.bytes, os.clock(),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
