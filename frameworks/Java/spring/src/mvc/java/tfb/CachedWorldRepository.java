package tfb;

import org.springframework.cache.annotation.Cacheable;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.RowMapper;
import org.springframework.stereotype.Repository;

/** Repository for a copy of the {@code world} table. The copy is never updated, so cached rows never become stale. */
@Repository
class CachedWorldRepository {

    private static final String SELECT = "SELECT id, randomnumber FROM \"World\" WHERE id = ?";
    private static final RowMapper<World> WORLD = (row, number) -> new World(row.getInt(1), row.getInt(2));

    private final JdbcTemplate jdbc;

    CachedWorldRepository(JdbcTemplate jdbc) {
        this.jdbc = jdbc;
    }

    /** Returns the row from the cache, or reads it from the database. */
    @Cacheable("worlds")
    World find(int id) {
        return jdbc.queryForObject(SELECT, WORLD, id);
    }
}
