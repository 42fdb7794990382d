package tfb

import com.github.benmanes.caffeine.cache.Cache
import com.github.benmanes.caffeine.cache.Caffeine

/** A cache of rows from a table that is never updated, so cached rows never become stale. */
class WorldCache(private val database: Database) {
    private val cache: Cache<Int, World> = Caffeine.newBuilder().maximumSize(ROWS.toLong()).build()

    /** Returns the rows in the order of [ids]. Rows missing from the cache are read from the database. */
    suspend fun worlds(ids: List<Int>): List<World> {
        val cached = cache.getAllPresent(ids)
        val missing = ids.filterNot(cached::containsKey).distinct()
        if (missing.isEmpty()) return ids.map(cached::getValue)
        val read = database.cacheableWorlds(missing).associateBy(World::id)
        cache.putAll(read)
        return ids.map { cached[it] ?: read.getValue(it) }
    }
}
