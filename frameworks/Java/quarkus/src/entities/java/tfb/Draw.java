package tfb;

import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/** Random ids and numbers. */
final class Draw {

    private static final int ROWS = 10_000;
    private static final int MAX_NUMBER = 10_000;

    private Draw() {}

    static int id() {
        return ThreadLocalRandom.current().nextInt(1, ROWS + 1);
    }

    /** Draws different ids, because a session reads a row only once, in ascending order, to prevent deadlocks. */
    static List<Integer> ids(int count) {
        return ThreadLocalRandom.current().ints(1, ROWS + 1).distinct().limit(count).sorted().boxed().toList();
    }

    /** Draws a number other than {@code old}. */
    static int numberOtherThan(int old) {
        int number = ThreadLocalRandom.current().nextInt(1, MAX_NUMBER);
        return number < old ? number : number + 1;
    }
}
