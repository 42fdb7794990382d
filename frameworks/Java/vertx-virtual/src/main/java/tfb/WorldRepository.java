package tfb;

import io.vertx.core.Future;
import io.vertx.sqlclient.Row;
import io.vertx.sqlclient.RowSet;
import io.vertx.sqlclient.Tuple;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Repository for the {@code world} table. It pipelines one SELECT per row, and writes all rows with a single UPDATE.
 */
final class WorldRepository {

    private static final int ROWS = 10_000;
    private static final int MAX_NUMBER = 10_000;

    private static final String SELECT = "SELECT id, randomnumber FROM world WHERE id = $1";
    private static final String UPDATE = """
            UPDATE world SET randomnumber = changed.number
            FROM unnest($1::int[], $2::int[]) AS changed(id, number) WHERE world.id = changed.id""";

    private final Database database;

    WorldRepository(Database database) {
        this.database = database;
    }

    /** Returns a random row. */
    World random() {
        return select(ThreadLocalRandom.current().nextInt(1, ROWS + 1)).await();
    }

    /** Returns {@code count} random rows. They are drawn independently, so rows may repeat. */
    List<World> random(int count) {
        return select(ThreadLocalRandom.current().ints(count, 1, ROWS + 1).toArray());
    }

    /** Updates {@code count} distinct rows in ascending id order, so that concurrent updates cannot deadlock. */
    List<World> updateRandom(int count) {
        int[] ids = ThreadLocalRandom.current().ints(1, ROWS + 1).distinct().limit(count).sorted().toArray();
        List<World> changed = select(ids).stream().map(WorldRepository::withOtherNumber).toList();
        update(changed);
        return changed;
    }

    private Future<World> select(int id) {
        return database.query(SELECT).execute(Tuple.of(id)).map(WorldRepository::world);
    }

    /** Reads the rows, sending all queries before waiting for results. */
    private List<World> select(int[] ids) {
        List<Future<World>> worlds = Arrays.stream(ids).mapToObj(this::select).toList();
        return Future.all(worlds).map(all -> all.<World>list()).await();
    }

    private void update(List<World> worlds) {
        Integer[] ids = worlds.stream().map(World::id).toArray(Integer[]::new);
        Integer[] numbers = worlds.stream().map(World::randomNumber).toArray(Integer[]::new);
        database.query(UPDATE).execute(Tuple.tuple().addArrayOfInteger(ids).addArrayOfInteger(numbers)).await();
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
