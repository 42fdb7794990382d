package tfb;

import io.vertx.sqlclient.Row;
import io.vertx.sqlclient.RowSet;
import io.vertx.sqlclient.Tuple;
import java.util.ArrayList;
import java.util.List;

/** Repository for the {@code fortune} table. */
final class FortuneRepository {

    private final Database.Statement select;

    FortuneRepository(Database database) {
        select = database.statement("SELECT id, message FROM fortune");
    }

    /** Returns all rows in a modifiable list. */
    List<Fortune> all() {
        return fortunes(select.execute(Tuple.tuple()).await());
    }

    private static List<Fortune> fortunes(RowSet<Row> rows) {
        List<Fortune> fortunes = new ArrayList<>(rows.size() + 1);
        for (Row row : rows) {
            fortunes.add(new Fortune(row.getInteger(0), row.getString(1)));
        }
        return fortunes;
    }
}
