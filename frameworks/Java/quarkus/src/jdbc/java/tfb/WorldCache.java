package tfb;

import io.quarkus.cache.Cache;
import io.quarkus.cache.CacheName;
import io.quarkus.cache.CaffeineCache;
import jakarta.enterprise.context.ApplicationScoped;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

/** A cache of rows from a table that is never updated, so cached rows never become stale. */
@ApplicationScoped
class WorldCache {

    private final CaffeineCache cache;
    private final WorldRepository worlds;

    WorldCache(@CacheName("worlds") Cache cache, WorldRepository worlds) {
        this.cache = cache.as(CaffeineCache.class);
        this.worlds = worlds;
    }

    /** Returns {@code count} random rows, which may repeat. Rows missing from the cache are read from the database. */
    World[] random(int count) throws SQLException {
        int[] ids = WorldRepository.randomIds(count);
        World[] rows = new World[count];
        Arrays.setAll(rows, i -> get(ids[i]));
        int[] missing = IntStream.range(0, count).filter(i -> rows[i] == null).toArray();
        if (missing.length > 0) {
            World[] read = worlds.cacheable(Arrays.stream(missing).map(i -> ids[i]).toArray());
            for (int i = 0; i < missing.length; i++) {
                rows[missing[i]] = read[i];
                put(read[i]);
            }
        }
        return rows;
    }

    /** Returns the cached row, or null. */
    World get(int id) {
        CompletableFuture<World> row = cache.getIfPresent(id);
        return row == null ? null : row.join();
    }

    void put(World row) {
        cache.put(row.id(), CompletableFuture.completedFuture(row));
    }
}
