# frozen_string_literal: true

# Puma's configuration: one process per CPU in the affinity mask.

require 'etc'

environment 'production'
workers Etc.nprocessors
threads 8, 8
bind "tcp://#{ENV.fetch('HOST', '0.0.0.0')}:#{ENV.fetch('PORT', '8080')}?backlog=4096&low_latency=true"
preload_app!
before_fork do
  Database::DB.server_version # cached here, so that the first request need not query it
  Database::DB.disconnect # workers must not share a connection
end
silence_single_worker_warning
raise_exception_on_sigterm false
worker_shutdown_timeout 3
# Keep connections open for as long as any load lasts, however many requests they carry.
max_fast_inline Float::INFINITY
persistent_timeout 300
