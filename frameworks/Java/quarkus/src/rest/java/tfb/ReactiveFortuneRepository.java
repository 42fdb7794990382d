package tfb;

import io.smallrye.mutiny.Uni;
import io.vertx.mutiny.sqlclient.Row;
import io.vertx.mutiny.sqlclient.RowSet;
import jakarta.enterprise.context.ApplicationScoped;
import java.util.ArrayList;
import java.util.List;

/** Repository for the {@code fortune} table. */
@ApplicationScoped
class ReactiveFortuneRepository {

    private final EventLoopConnections database;

    ReactiveFortuneRepository(EventLoopConnections database) {
        this.database = database;
    }

    /** Returns all rows in a modifiable list. */
    Uni<List<Fortune>> all() {
        return database.with(connection -> connection.preparedQuery("SELECT id, message FROM fortune").execute())
                .map(ReactiveFortuneRepository::fortunes);
    }

    private static List<Fortune> fortunes(RowSet<Row> rows) {
        List<Fortune> fortunes = new ArrayList<>(rows.size() + 1);
        for (Row row : rows) {
            fortunes.add(new Fortune(row.getInteger(0), row.getString(1)));
        }
        return fortunes;
    }
}
