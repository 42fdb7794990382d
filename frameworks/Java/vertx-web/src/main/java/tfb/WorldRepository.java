package tfb;

import io.vertx.core.Future;
import io.vertx.sqlclient.Row;
import io.vertx.sqlclient.RowSet;
import io.vertx.sqlclient.Tuple;
import java.util.Arrays;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Repository for the {@code world} table. It pipelines one SELECT per row, and writes all rows with a single UPDATE.
 */
final class WorldRepository {

    static final int ROWS = 10_000;

    private static final int MAX_NUMBER = 10_000;
    private static final String UPDATE = """
            UPDATE world SET randomnumber = changed.number
            FROM unnest($1::int[], $2::int[]) AS changed(id, number) WHERE world.id = changed.id""";

    private final WorldSelect select;
    private final Database.Statement update;

    WorldRepository(Database database) {
        select = new WorldSelect(database, "world");
        update = database.statement(UPDATE);
    }

    /** Returns a random row. */
    Future<World> random() {
        return select.one(randomId());
    }

    /** Returns {@code count} random rows. They are drawn independently, so rows may repeat. */
    Future<World[]> random(int count) {
        return select.all(randomIds(count));
    }

    /** Updates {@code count} distinct rows in ascending id order, so that concurrent updates cannot deadlock. */
    Future<World[]> updateRandom(int count) {
        return select.all(distinctIds(count)).compose(read -> {
            World[] changed = new World[read.length];
            Arrays.setAll(changed, i -> withOtherNumber(read[i]));
            return update(changed).map(changed);
        });
    }

    static int randomId() {
        return ThreadLocalRandom.current().nextInt(1, ROWS + 1);
    }

    static int[] randomIds(int count) {
        int[] ids = new int[count];
        Arrays.setAll(ids, i -> randomId());
        return ids;
    }

    private static int[] distinctIds(int count) {
        return ThreadLocalRandom.current().ints(1, ROWS + 1).distinct().limit(count).sorted().toArray();
    }

    private Future<RowSet<Row>> update(World[] worlds) {
        Integer[] ids = new Integer[worlds.length];
        Integer[] numbers = new Integer[worlds.length];
        for (int i = 0; i < worlds.length; i++) {
            ids[i] = worlds[i].id();
            numbers[i] = worlds[i].randomNumber();
        }
        return update.execute(Tuple.tuple().addArrayOfInteger(ids).addArrayOfInteger(numbers));
    }

    /** Returns a copy of the row with a different number. */
    private static World withOtherNumber(World world) {
        int number = ThreadLocalRandom.current().nextInt(1, MAX_NUMBER);
        return new World(world.id(), number < world.randomNumber() ? number : number + 1);
    }
}
