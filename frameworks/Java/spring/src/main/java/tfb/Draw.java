package tfb;

import java.util.concurrent.ThreadLocalRandom;

/** Draws random ids and numbers for the {@code world} table. */
final class Draw {

    private static final int ROWS = 10_000;
    private static final int MAX_NUMBER = 10_000;

    private Draw() {}

    static int id() {
        return ThreadLocalRandom.current().nextInt(1, ROWS + 1);
    }

    static int[] ids(int count) {
        return ThreadLocalRandom.current().ints(count, 1, ROWS + 1).toArray();
    }

    /** Draws distinct ids in ascending order, so that concurrent updates cannot deadlock. */
    static int[] differentIds(int count) {
        return ThreadLocalRandom.current().ints(1, ROWS + 1).distinct().limit(count).sorted().toArray();
    }

    /** Returns a copy of the row with a different number. */
    static World withOtherNumber(World world) {
        int number = ThreadLocalRandom.current().nextInt(1, MAX_NUMBER);
        return new World(world.id(), number < world.randomNumber() ? number : number + 1);
    }
}
