# frozen_string_literal: true

# The Sinatra application: routes, headers and errors.

require 'json'
require 'sinatra/base'
require 'time'
require_relative 'database'
require_relative 'draws'

# Implements the benchmark's test types.
class App < Sinatra::Base
  set :environment, :production
  disable :protection, :logging, :static

  before { headers 'server' => 'Sinatra', 'date' => Time.now.httpdate }

  helpers do
    def json(value)
      content_type :json
      JSON.generate(value)
    end

    def text(value)
      content_type 'text/plain'
      value
    end

    def count(name) = Draws.clamped(params[name], 1..500, 1)

    def h(text) = Rack::Utils.escape_html(text)
  end

  get('/json') { json(message: 'Hello, World!') }

  get('/plaintext') { text 'Hello, World!' }

  get('/db') { json Database.world(Draws.row) }

  # Each row is read with a separate SELECT.
  get('/queries') { json(Array.new(count('queries')) { Database.world(Draws.row) }) }

  get('/cached-queries') { json(Array.new(count('count')) { Database.cached_world(Draws.row) }) }

  get '/updates' do
    json(Database.update(Draws.distinct_rows(count('queries'))) { |old| Draws.number_other_than(old) })
  end

  get '/fortunes' do
    @fortunes = [*Database.fortunes, { id: 0, message: 'Additional fortune added at request time.' }]
    @fortunes.sort_by! { |fortune| fortune[:message] }
    content_type 'text/html', charset: 'utf-8'
    erb :fortunes
  end

  # Blocks the thread.
  get '/delay' do
    sleep Draws.clamped(params['ms'], 0..1000, 0) / 1000.0
    text 'Hello, World!'
  end

  error Sequel::Error do
    warn "#{request.path_info}: #{env['sinatra.error'].message}"
    halt 503
  end
end
