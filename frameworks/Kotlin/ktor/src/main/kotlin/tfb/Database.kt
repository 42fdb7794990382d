package tfb

import com.zaxxer.hikari.HikariConfig
import com.zaxxer.hikari.HikariDataSource
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.withContext
import kotlinx.serialization.Serializable
import java.sql.Connection
import java.util.concurrent.ThreadLocalRandom
import kotlin.time.Duration.Companion.seconds

private const val CONNECTIONS_PER_CPU = 8
const val ROWS = 10_000
private const val SELECT = "SELECT id, randomnumber FROM world WHERE id = ?"
/** Reads from a copy of the table `world`. The copy is never updated, so the rows may be cached. */
private const val SELECT_CACHEABLE = "SELECT id, randomnumber FROM \"World\" WHERE id = ?"
private const val UPDATE =
    "UPDATE world SET randomnumber = changed.number FROM unnest(?, ?) AS changed(id, number) WHERE world.id = changed.id"
private const val FORTUNES = "SELECT id, message FROM fortune"

@Serializable
data class World(val id: Int, val randomNumber: Int)

data class Fortune(val id: Int, val message: String)

/** Blocking JDBC with a HikariCP pool. The number of threads that may block equals the number of connections. */
class Database {
    private val connections = CONNECTIONS_PER_CPU * Runtime.getRuntime().availableProcessors()
    private val threads = Dispatchers.IO.limitedParallelism(connections)
    private val pool = HikariDataSource(HikariConfig().apply {
        val host = environment("DBHOST") ?: "tfb-database"
        val port = environment("DBPORT") ?: "5432"
        val name = environment("DBNAME") ?: "hello_world"
        jdbcUrl = "jdbc:postgresql://$host:$port/$name?sslmode=disable"
        username = environment("DBUSER") ?: "benchmarkdbuser"
        password = environment("DBPASS") ?: "benchmarkdbpass"
        maximumPoolSize = connections
        initializationFailTimeout = -1 // connect on demand, so that the server can start before the database
        connectionTimeout = 5.seconds.inWholeMilliseconds
        validationTimeout = 500
        addDataSourceProperty("connectTimeout", "5")
        // Use server-side prepared statements and binary results from the first execution instead of the fifth.
        addDataSourceProperty("prepareThreshold", "1")
    })

    /** Reads each row with a separate SELECT. */
    suspend fun worlds(ids: List<Int>): List<World> = connected { it.select(SELECT, ids) }

    /** Reads rows from the table's copy, which is never updated. */
    suspend fun cacheableWorlds(ids: List<Int>): List<World> = connected { it.select(SELECT_CACHEABLE, ids) }

    /** Gives each row a new number. Callers pass ascending ids, so that concurrent updates cannot deadlock. */
    suspend fun updateWorlds(ids: List<Int>): List<World> = connected { connection ->
        val worlds = connection.select(SELECT, ids).map { it.copy(randomNumber = numberOtherThan(it.randomNumber)) }
        connection.prepareStatement(UPDATE).use { statement ->
            statement.setObject(1, worlds.map(World::id).toIntArray())
            statement.setObject(2, worlds.map(World::randomNumber).toIntArray())
            statement.executeUpdate()
        }
        worlds
    }

    suspend fun fortunes(): List<Fortune> = connected { connection ->
        connection.prepareStatement(FORTUNES).use { statement ->
            val rows = statement.executeQuery()
            buildList { while (rows.next()) add(Fortune(rows.getInt(1), rows.getString(2))) }
        }
    }

    private suspend fun <T> connected(block: (Connection) -> T): T =
        withContext(threads) { pool.connection.use(block) }

    private fun Connection.select(sql: String, ids: List<Int>): List<World> = prepareStatement(sql).use { statement ->
        ids.map { id ->
            statement.setInt(1, id)
            val row = statement.executeQuery()
            row.next()
            World(row.getInt(1), row.getInt(2))
        }
    }
}

fun randomIds(count: Int): List<Int> = List(count) { ThreadLocalRandom.current().nextInt(1, ROWS + 1) }

/** Returns distinct random ids in ascending order. */
fun distinctIds(count: Int): List<Int> =
    generateSequence { ThreadLocalRandom.current().nextInt(1, ROWS + 1) }.distinct().take(count).sorted().toList()

/** Returns a random number that differs from [old]. */
private fun numberOtherThan(old: Int): Int {
    val number = ThreadLocalRandom.current().nextInt(1, ROWS)
    return if (number < old) number else number + 1
}
