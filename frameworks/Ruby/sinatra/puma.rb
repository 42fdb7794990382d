# frozen_string_literal: true

# Puma's configuration: one process per CPU in the affinity mask.

require 'etc'

environment 'production'
workers Etc.nprocessors
threads 8, 8
bind "tcp://#{ENV.fetch('HOST', '0.0.0.0')}:#{ENV.fetch('PORT', '8080')}?backlog=4096&low_latency=true"
preload_app!
before_fork do
  Database::DB.server_version # otherwise, the first request asks for it
  Database::DB.disconnect # workers must not share a connection
end
silence_single_worker_warning
raise_exception_on_sigterm false
worker_shutdown_timeout 3
# Practically keep connections open until the client closes them.
max_fast_inline Float::INFINITY
persistent_timeout 300
