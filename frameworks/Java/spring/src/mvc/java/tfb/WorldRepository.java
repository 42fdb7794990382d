package tfb;

import java.util.Arrays;
import java.util.List;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.RowMapper;
import org.springframework.stereotype.Repository;
import org.springframework.transaction.annotation.Propagation;
import org.springframework.transaction.annotation.Transactional;

/**
 * Repository for the {@code world} table. Reads each row with a SELECT, and writes all rows with a single UPDATE. With
 * {@code SUPPORTS}, all statements of a method use the same connection, without a transaction.
 */
@Repository
class WorldRepository {

    private static final String SELECT = "SELECT id, randomnumber FROM world WHERE id = ?";
    private static final String UPDATE = """
            UPDATE world SET randomnumber = changed.number
            FROM unnest(?, ?) AS changed(id, number) WHERE world.id = changed.id""";
    private static final RowMapper<World> WORLD = (row, number) -> new World(row.getInt(1), row.getInt(2));

    private final JdbcTemplate jdbc;

    WorldRepository(JdbcTemplate jdbc) {
        this.jdbc = jdbc;
    }

    /** Returns a random row. */
    World random() {
        return select(Draw.id());
    }

    /** Returns {@code count} random rows. They are drawn independently, so rows may repeat. */
    @Transactional(propagation = Propagation.SUPPORTS, readOnly = true)
    List<World> random(int count) {
        return Arrays.stream(Draw.ids(count)).mapToObj(this::select).toList();
    }

    /** Updates {@code count} distinct rows and returns them. */
    @Transactional(propagation = Propagation.SUPPORTS)
    List<World> updateRandom(int count) {
        List<World> changed = Arrays.stream(Draw.differentIds(count))
                .mapToObj(this::select)
                .map(Draw::withOtherNumber)
                .toList();
        int[] ids = changed.stream().mapToInt(World::id).toArray();
        int[] numbers = changed.stream().mapToInt(World::randomNumber).toArray();
        jdbc.update(UPDATE, ids, numbers);
        return changed;
    }

    private World select(int id) {
        return jdbc.queryForObject(SELECT, WORLD, id);
    }
}
