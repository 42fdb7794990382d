# frozen_string_literal: true

# Puma's configuration: one process per CPU in the affinity mask.

require 'etc'

environment 'production'
workers Etc.nprocessors
threads 8, 8
bind "tcp://#{ENV.fetch('HOST', '0.0.0.0')}:#{ENV.fetch('PORT', '8080')}?backlog=4096&low_latency=true"
preload_app!
# Forked workers must not share the connection on which Sequel prepared the statements.
before_fork { Database::DB.disconnect }
silence_single_worker_warning
raise_exception_on_sigterm false
force_shutdown_after 3
# Practically keep connections open until the client closes them.
max_fast_inline Float::INFINITY
persistent_timeout 300
