package tfb;

import jakarta.annotation.Resource;
import jakarta.enterprise.context.ApplicationScoped;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.concurrent.ThreadLocalRandom;
import javax.sql.DataSource;

/** Repository for the {@code world} table. Reads each row with a SELECT, and writes all rows with a single UPDATE. */
@ApplicationScoped
public class WorldRepository {

    private static final int ROWS = 10_000;
    private static final int MAX_NUMBER = 10_000;

    private static final String SELECT = "SELECT id, randomnumber FROM world WHERE id = ?";
    /** Reads from a copy of the {@code world} table. The copy is never updated, so the rows may be cached. */
    private static final String SELECT_CACHEABLE = "SELECT id, randomnumber FROM \"World\" WHERE id = ?";
    private static final String UPDATE = """
            UPDATE world SET randomnumber = changed.number
            FROM unnest(?, ?) AS changed(id, number) WHERE world.id = changed.id""";

    @Resource(lookup = "java:jboss/datasources/tfb")
    private DataSource database;

    /** Returns {@code count} random rows. They are drawn independently, so rows may repeat. */
    public World[] random(int count) throws SQLException {
        int[] ids = randomIds(count);
        try (Connection connection = database.getConnection()) {
            return select(connection, SELECT, ids);
        }
    }

    /** Returns rows from the table's copy, which is never updated. */
    public World[] cacheable(int[] ids) throws SQLException {
        try (Connection connection = database.getConnection()) {
            return select(connection, SELECT_CACHEABLE, ids);
        }
    }

    static int[] randomIds(int count) {
        return ThreadLocalRandom.current().ints(count, 1, ROWS + 1).toArray();
    }

    /** Updates {@code count} distinct rows in ascending id order, so that concurrent updates cannot deadlock. */
    public World[] updateRandom(int count) throws SQLException {
        int[] ids = ThreadLocalRandom.current().ints(1, ROWS + 1).distinct().limit(count).sorted().toArray();
        try (Connection connection = database.getConnection()) {
            World[] worlds = select(connection, SELECT, ids);
            int[] numbers = new int[count];
            for (int i = 0; i < count; i++) {
                numbers[i] = numberOtherThan(worlds[i].randomNumber());
                worlds[i] = new World(ids[i], numbers[i]);
            }
            update(connection, ids, numbers);
            return worlds;
        }
    }

    private static World[] select(Connection connection, String sql, int[] ids) throws SQLException {
        World[] worlds = new World[ids.length];
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < ids.length; i++) {
                statement.setInt(1, ids[i]);
                try (ResultSet row = statement.executeQuery()) {
                    row.next();
                    worlds[i] = new World(row.getInt(1), row.getInt(2));
                }
            }
        }
        return worlds;
    }

    private static void update(Connection connection, int[] ids, int[] numbers) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(UPDATE)) {
            statement.setObject(1, ids);
            statement.setObject(2, numbers);
            statement.executeUpdate();
        }
    }

    /** Returns a random number that differs from {@code old}. */
    private static int numberOtherThan(int old) {
        int number = ThreadLocalRandom.current().nextInt(1, MAX_NUMBER);
        return number < old ? number : number + 1;
    }
}
