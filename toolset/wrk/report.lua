-- Prints wrk's result as a line of JSON. The script defines only done(), so it can be combined with any request script.

function done(summary)
  local errors = summary.errors
  io.write(string.format(
    '{"duration_us":%d,"requests":%d,"bytes":%d,"cpu_seconds":%.6f,' ..
    '"errors":{"connect":%d,"read":%d,"write":%d,"status":%d,"timeout":%d}}\n',
    summary.duration, summary.requests, summary.bytes, os.clock(),
    errors.connect, errors.read, errors.write, errors.status, errors.timeout))
end
