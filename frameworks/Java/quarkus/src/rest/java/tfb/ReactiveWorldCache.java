package tfb;

import io.smallrye.mutiny.Uni;
import jakarta.enterprise.context.ApplicationScoped;
import java.util.Arrays;
import java.util.stream.IntStream;

/** Reads rows from the same cache as {@link WorldCache}, but fills it without blocking. */
@ApplicationScoped
class ReactiveWorldCache {

    private final WorldCache cache;
    private final ReactiveWorldRepository worlds;

    ReactiveWorldCache(WorldCache cache, ReactiveWorldRepository worlds) {
        this.cache = cache;
        this.worlds = worlds;
    }

    /** Returns {@code count} random rows, which may repeat. Rows missing from the cache are read from the database. */
    Uni<World[]> random(int count) {
        int[] ids = WorldRepository.randomIds(count);
        World[] rows = new World[count];
        Arrays.setAll(rows, i -> cache.get(ids[i]));
        int[] missing = IntStream.range(0, count).filter(i -> rows[i] == null).toArray();
        if (missing.length == 0) {
            return Uni.createFrom().item(rows);
        }
        return worlds.cacheable(Arrays.stream(missing).map(i -> ids[i]).toArray()).map(read -> {
            for (int i = 0; i < missing.length; i++) {
                rows[missing[i]] = read.get(i);
                cache.put(read.get(i));
            }
            return rows;
        });
    }
}
