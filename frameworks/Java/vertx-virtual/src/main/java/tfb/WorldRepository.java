package tfb;

import io.vertx.sqlclient.Tuple;
import java.util.Arrays;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Repository for the {@code world} table. It pipelines one SELECT per row, and writes all rows with a single UPDATE.
 * Its methods wait for the database, so they must be called on a virtual thread.
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
    World random() {
        return select.one(randomId()).await();
    }

    /** Returns {@code count} random rows. They are drawn independently, so rows may repeat. */
    World[] random(int count) {
        return select.all(randomIds(count)).await();
    }

    /** Updates {@code count} distinct rows in ascending id order, so that concurrent updates cannot deadlock. */
    World[] updateRandom(int count) {
        World[] read = select.all(distinctIds(count)).await();
        World[] changed = new World[read.length];
        Arrays.setAll(changed, i -> withOtherNumber(read[i]));
        update(changed);
        return changed;
    }

    static int[] randomIds(int count) {
        int[] ids = new int[count];
        Arrays.setAll(ids, i -> randomId());
        return ids;
    }

    private static int randomId() {
        return ThreadLocalRandom.current().nextInt(1, ROWS + 1);
    }

    private static int[] distinctIds(int count) {
        return ThreadLocalRandom.current().ints(1, ROWS + 1).distinct().limit(count).sorted().toArray();
    }

    private void update(World[] worlds) {
        Integer[] ids = new Integer[worlds.length];
        Integer[] numbers = new Integer[worlds.length];
        for (int i = 0; i < worlds.length; i++) {
            ids[i] = worlds[i].id();
            numbers[i] = worlds[i].randomNumber();
        }
        update.execute(Tuple.tuple().addArrayOfInteger(ids).addArrayOfInteger(numbers)).await();
    }

    /** Returns a copy of the row with a different number. */
    private static World withOtherNumber(World world) {
        int number = ThreadLocalRandom.current().nextInt(1, MAX_NUMBER);
        return new World(world.id(), number < world.randomNumber() ? number : number + 1);
    }
}
