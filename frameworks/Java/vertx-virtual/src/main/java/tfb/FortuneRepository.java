package tfb;

import io.vertx.sqlclient.Row;
import io.vertx.sqlclient.RowSet;
import java.util.ArrayList;
import java.util.List;

/** Repository for the {@code fortune} table. */
final class FortuneRepository {

    private static final String SELECT = "SELECT id, message FROM fortune";

    private final Database database;

    FortuneRepository(Database database) {
        this.database = database;
    }

    /** Returns all rows in a modifiable list. */
    List<Fortune> all() {
        return fortunes(database.query(SELECT).execute().await());
    }

    private static List<Fortune> fortunes(RowSet<Row> rows) {
        List<Fortune> fortunes = new ArrayList<>(rows.size() + 1);
        for (Row row : rows) {
            fortunes.add(new Fortune(row.getInteger(0), row.getString(1)));
        }
        return fortunes;
    }
}
