# frozen_string_literal: true

require 'sequel'

# PostgreSQL with Sequel: prepared statements on a pool that connects on demand.
module Database
  CONNECTIONS = 8 # per process, one for each thread that puma.rb configures
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
  SELECT_WORLD = DB[:world].select(:id, Sequel[:randomnumber].as(:randomNumber)).where(id: :$id).prepare(:first, :world)
  SELECT_FORTUNES = DB[:fortune].select(:id, :message).prepare(:select, :fortunes)
  UPDATE_WORLDS = DB[
    'UPDATE world SET randomnumber = new.randomnumber ' \
    'FROM unnest(?::int[], ?::int[]) AS new (id, randomnumber) WHERE world.id = new.id', :$ids, :$numbers
  ].prepare(:update, :update)
  CACHE = {} # filled on demand; at most the whole table

  module_function

  def world(id) = SELECT_WORLD.call(id: id)

  def cached_world(id) = CACHE[id] ||= world(id)

  def fortunes = SELECT_FORTUNES.call

  # Reads rows, replaces each number with the block's result, and writes all rows in one statement.
  def update(ids)
    DB.synchronize do # one connection for the whole request
      worlds = ids.map { |id| world(id) }
      worlds.each { |world| world[:randomNumber] = yield world[:randomNumber] }
      UPDATE_WORLDS.call(ids: "{#{ids.join(',')}}", numbers: "{#{worlds.map { |world| world[:randomNumber] }.join(',')}}")
      worlds
    end
  end
end
