package tfb;

import org.springframework.cache.annotation.Cacheable;
import org.springframework.dao.EmptyResultDataAccessException;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.stereotype.Repository;
import reactor.core.publisher.Mono;

/** Repository for a copy of the {@code world} table. The copy is never updated, so cached rows never become stale. */
@Repository
class CachedWorldRepository {

    private static final String SELECT = "SELECT id, randomnumber FROM \"World\" WHERE id = $1";

    private final DatabaseClient database;

    CachedWorldRepository(DatabaseClient database) {
        this.database = database;
    }

    /** Returns the row from the cache, or reads it from the database. */
    @Cacheable("worlds")
    Mono<World> find(int id) {
        return database.sql(SELECT)
                .bind(0, id)
                .map(row -> new World(row.get(0, Integer.class), row.get(1, Integer.class)))
                .one()
                .switchIfEmpty(Mono.error(() -> new EmptyResultDataAccessException(1)));
    }
}
