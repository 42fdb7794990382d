package tfb;

import com.github.benmanes.caffeine.cache.Cache;
import com.github.benmanes.caffeine.cache.Caffeine;
import java.util.Arrays;
import java.util.stream.IntStream;

/** A cache of rows from a table that is never updated, so cached rows never become stale. */
final class WorldCache {

    private final Cache<Integer, World> cache = Caffeine.newBuilder().maximumSize(WorldRepository.ROWS).build();
    private final WorldSelect select;

    WorldCache(Database database) {
        select = new WorldSelect(database, "\"World\"");
    }

    /**
     * Returns {@code count} random rows, which may repeat. Rows missing from the cache are read from the database, and
     * the virtual thread waits for them.
     */
    World[] random(int count) {
        int[] ids = WorldRepository.randomIds(count);
        World[] worlds = new World[count];
        boolean complete = true;
        for (int i = 0; i < count; i++) {
            worlds[i] = cache.getIfPresent(ids[i]);
            complete &= worlds[i] != null;
        }
        if (!complete) {
            read(ids, worlds);
        }
        return worlds;
    }

    private void read(int[] ids, World[] worlds) {
        int[] missing = IntStream.range(0, ids.length).filter(i -> worlds[i] == null).toArray();
        World[] read = select.all(Arrays.stream(missing).map(i -> ids[i]).toArray()).await();
        for (int i = 0; i < missing.length; i++) {
            worlds[missing[i]] = read[i];
            cache.put(read[i].id(), read[i]);
        }
    }
}
