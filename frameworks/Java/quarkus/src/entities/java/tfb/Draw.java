package tfb;

import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/** Draws random ids and numbers for the {@code world} table. */
final class Draw {

    private static final int ROWS = 10_000;
    private static final int MAX_NUMBER = 10_000;

    private Draw() {}

    static int id() {
        return ThreadLocalRandom.current().nextInt(1, ROWS + 1);
    }

    /** Draws distinct ids in ascending order, so that concurrent updates cannot deadlock. */
    static List<Integer> distinctIds(int count) {
        return ThreadLocalRandom.current().ints(1, ROWS + 1).distinct().limit(count).sorted().boxed().toList();
    }

    /** Returns a random number that differs from {@code old}. */
    static int numberOtherThan(int old) {
        int number = ThreadLocalRandom.current().nextInt(1, MAX_NUMBER);
        return number < old ? number : number + 1;
    }
}
