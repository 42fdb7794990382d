package tfb;

import java.util.List;

/** An entry in the data set for /json/{count}. */
public record Item(int id, String name, String category, long price, long quantity, boolean active, List<String> tags,
        Rating rating) {

    /** An item's rating. */
    public record Rating(int score, int count) {}

    /** An item with its total, which is price × quantity × multiplier. */
    public record WithTotal(int id, String name, String category, long price, long quantity, boolean active,
            List<String> tags, Rating rating, long total) {}

    /** The response body of /json/{count}. */
    public record Page(List<WithTotal> items, int count) {}

    WithTotal times(long multiplier) {
        return new WithTotal(
                id, name, category, price, quantity, active, tags, rating, price * quantity * multiplier);
    }
}
