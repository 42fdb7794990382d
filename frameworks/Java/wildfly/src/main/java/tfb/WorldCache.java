package tfb;

import jakarta.annotation.Resource;
import jakarta.enterprise.context.ApplicationScoped;
import jakarta.inject.Inject;
import java.sql.SQLException;
import java.util.Arrays;
import java.util.concurrent.ConcurrentMap;
import java.util.stream.IntStream;

/** A cache of rows from a table that is never updated, so cached rows never become stale. */
@ApplicationScoped
public class WorldCache {

    /** The server's Infinispan cache, which server.cli configures. */
    @Resource(lookup = "java:jboss/infinispan/cache/tfb/worlds")
    private ConcurrentMap<Integer, World> cache;

    @Inject
    private WorldRepository worlds;

    /** Returns {@code count} random rows, which may repeat. Rows missing from the cache are read from the database. */
    public World[] random(int count) throws SQLException {
        int[] ids = WorldRepository.randomIds(count);
        World[] rows = new World[count];
        Arrays.setAll(rows, i -> cache.get(ids[i]));
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
