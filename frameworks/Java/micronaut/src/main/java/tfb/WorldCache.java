package tfb;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.stream.IntStream;

/** A cache of rows from a table that is never updated, so cached rows never become stale. */
public final class WorldCache {

    private final Cache<Integer, World> cache = Caffeine.newBuilder().maximumSize(WorldRepository.ROWS).build();
    private final WorldRepository worlds;

    public WorldCache(WorldRepository worlds) {
        this.worlds = worlds;
    }

    /** Returns {@code count} random rows, which may repeat. Rows missing from the cache are read from the database. */
    World[] random(int count) throws SQLException {
        int[] ids = WorldRepository.randomIds(count);
        World[] rows = new World[count];
        Arrays.setAll(rows, i -> cache.getIfPresent(ids[i]));
        int[] missing = IntStream.range(0, count).filter(i -> rows[i] == null).toArray();
        if (missing.length > 0) {
            World[] read = worlds.cacheable(Arrays.stream(missing).map(i -> ids[i]).toArray());
            for (int i = 0; i < missing.length; i++) {
                rows[missing[i]] = read[i];
                cache.put(read[i].id(), read[i]);
            }
        }
        return rows;
    }
}
