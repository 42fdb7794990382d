package tfb;

import io.smallrye.mutiny.Uni;
import io.vertx.mutiny.sqlclient.Row;
import io.vertx.mutiny.sqlclient.RowSet;
import io.vertx.mutiny.sqlclient.SqlClient;
import io.vertx.mutiny.sqlclient.Tuple;
import jakarta.enterprise.context.ApplicationScoped;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Repository for the {@code world} table. It pipelines a request's SELECTs on the event loop's connection, and writes
 * all rows with a single UPDATE.
 */
@ApplicationScoped
class ReactiveWorldRepository {

    private static final int ROWS = 10_000;
    private static final int MAX_NUMBER = 10_000;

    private static final String SELECT = "SELECT id, randomnumber FROM world WHERE id = $1";
    /** Reads from a copy of the {@code world} table. The copy is never updated, so the rows may be cached. */
    private static final String SELECT_CACHEABLE = "SELECT id, randomnumber FROM \"World\" WHERE id = $1";
    private static final String UPDATE = """
            UPDATE world SET randomnumber = changed.number
            FROM unnest($1::int[], $2::int[]) AS changed(id, number) WHERE world.id = changed.id""";

    private final EventLoopConnections database;

    ReactiveWorldRepository(EventLoopConnections database) {
        this.database = database;
    }

    /** Returns a random row. */
    Uni<World> random() {
        int id = ThreadLocalRandom.current().nextInt(1, ROWS + 1);
        return database.with(connection -> select(connection, SELECT, id));
    }

    /** Returns {@code count} random rows. They are drawn independently, so rows may repeat. */
    Uni<List<World>> random(int count) {
        int[] ids = WorldRepository.randomIds(count);
        return database.with(connection -> select(connection, SELECT, ids));
    }

    /** Returns rows from the table's copy, which is never updated. */
    Uni<List<World>> cacheable(int[] ids) {
        return database.with(connection -> select(connection, SELECT_CACHEABLE, ids));
    }

    /** Updates {@code count} distinct rows in ascending id order, so that concurrent updates cannot deadlock. */
    Uni<List<World>> updateRandom(int count) {
        int[] ids = ThreadLocalRandom.current().ints(1, ROWS + 1).distinct().limit(count).sorted().toArray();
        return database.with(connection -> select(connection, SELECT, ids).chain(read -> {
            List<World> changed = read.stream().map(ReactiveWorldRepository::withOtherNumber).toList();
            return update(connection, changed).replaceWith(changed);
        }));
    }

    private static Uni<World> select(SqlClient client, String sql, int id) {
        return client.preparedQuery(sql).execute(Tuple.of(id)).map(ReactiveWorldRepository::world);
    }

    private static Uni<List<World>> select(SqlClient client, String sql, int[] ids) {
        List<Uni<World>> worlds = new ArrayList<>(ids.length);
        for (int id : ids) {
            worlds.add(select(client, sql, id));
        }
        return Uni.join().all(worlds).andFailFast();
    }

    private static Uni<RowSet<Row>> update(SqlClient client, List<World> worlds) {
        Integer[] ids = worlds.stream().map(World::id).toArray(Integer[]::new);
        Integer[] numbers = worlds.stream().map(World::randomNumber).toArray(Integer[]::new);
        return client.preparedQuery(UPDATE).execute(Tuple.tuple().addArrayOfInteger(ids).addArrayOfInteger(numbers));
    }

    private static World world(RowSet<Row> rows) {
        Row row = rows.iterator().next();
        return new World(row.getInteger(0), row.getInteger(1));
    }

    /** Returns a copy of the row with a different number. */
    private static World withOtherNumber(World world) {
        int number = ThreadLocalRandom.current().nextInt(1, MAX_NUMBER);
        return new World(world.id(), number < world.randomNumber() ? number : number + 1);
    }
}
