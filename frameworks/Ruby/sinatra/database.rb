# frozen_string_literal: true

require 'sequel'

# PostgreSQL access through Sequel's datasets, with a pool that connects on demand. Statements are not prepared: pg
# 1.5.6 once sent a prepared statement that PostgreSQL rejected as an invalid byte sequence.
module Database
  CONNECTIONS = 8 # per process: one for each thread in puma.rb, which starts a process per CPU
  DB = Sequel.connect(
    adapter: 'postgres',
    host: ENV.fetch('DBHOST', 'tfb-database'),
    port: ENV.fetch('DBPORT', '5432').to_i,
    database: ENV.fetch('DBNAME', 'hello_world'),
    user: ENV.fetch('DBUSER', 'benchmarkdbuser'),
    password: ENV.fetch('DBPASS', 'benchmarkdbpass'),
    max_connections: CONNECTIONS,
    pool_timeout: 3,
    connect_timeout: 3,
    test: false
  )
  WORLDS = DB[:world].select(:id, Sequel[:randomnumber].as(:randomNumber))
  FORTUNES = DB[:fortune].select(:id, :message)
  UPDATE_WORLDS = 'UPDATE world SET randomnumber = new.randomnumber ' \
                  'FROM unnest(?::int[], ?::int[]) AS new (id, randomnumber) WHERE world.id = new.id'
  CACHE = {} # filled on demand; at most the whole table

  module_function

  def world(id) = WORLDS.first(id: id)

  def cached_world(id) = CACHE[id] ||= world(id)

  def fortunes = FORTUNES.all

  # Reads rows, replaces each number with the block's result, and writes all rows in one statement.
  def update(ids)
    DB.synchronize do # one connection for the whole request
      worlds = ids.map { |id| world(id) }
      worlds.each { |world| world[:randomNumber] = yield world[:randomNumber] }
      numbers = worlds.map { |world| world[:randomNumber] }
      DB[UPDATE_WORLDS, "{#{ids.join(',')}}", "{#{numbers.join(',')}}"].update
      worlds
    end
  end
end
