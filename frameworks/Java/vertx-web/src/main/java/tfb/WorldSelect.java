package tfb;

import io.vertx.core.Completable;
import io.vertx.core.Future;
import io.vertx.core.Promise;
import io.vertx.sqlclient.Row;
import io.vertx.sqlclient.RowSet;
import io.vertx.sqlclient.Tuple;
import java.util.NoSuchElementException;

/** Reads rows by id from the {@code world} table or its copy, with a pipelined SELECT for each row. */
final class WorldSelect {

    private final Database.Statement select;

    WorldSelect(Database database, String table) {
        select = database.statement("SELECT id, randomnumber FROM " + table + " WHERE id = $1");
    }

    Future<World> one(int id) {
        return select.execute(Tuple.of(id)).map(WorldSelect::world);
    }

    /** Returns the rows in the order of {@code ids}, because a connection returns results in query order. */
    Future<World[]> all(int[] ids) {
        Collector collector = new Collector(ids.length);
        for (int id : ids) {
            select.execute(Tuple.of(id)).onComplete(collector);
        }
        return collector.rows.future();
    }

    private static World world(RowSet<Row> rows) {
        Row row = rows.iterator().next();
        return new World(row.getInteger(0), row.getInteger(1));
    }

    /** A callback shared by a request's queries, instead of one future per query and Future.all. */
    private static final class Collector implements Completable<RowSet<Row>> {

        private final Promise<World[]> rows = Promise.promise();
        private final World[] worlds;
        private int answered;

        Collector(int count) {
            worlds = new World[count];
        }

        @Override
        public void complete(RowSet<Row> result, Throwable failure) {
            if (failure != null || result.size() == 0) {
                rows.tryFail(failure != null ? failure : new NoSuchElementException("no such row"));
                return;
            }
            worlds[answered++] = world(result);
            if (answered == worlds.length) {
                rows.complete(worlds);
            }
        }
    }
}
