package tfb;

import java.util.List;

/** An item of the data set. */
public record Item(int id, String name, String category, long price, long quantity, boolean active, List<String> tags,
        Rating rating) {

    /** The rating of an item. */
    public record Rating(int score, int count) {}

    /** An item, with its total: price × quantity × multiplier. */
    public record WithTotal(int id, String name, String category, long price, long quantity, boolean active,
            List<String> tags, Rating rating, long total) {}

    /** The response of /json/{count}. */
    public record Page(List<WithTotal> items, int count) {}

    WithTotal times(long multiplier) {
        return new WithTotal(
                id, name, category, price, quantity, active, tags, rating, price * quantity * multiplier);
    }
}
