package tfb;

import io.r2dbc.spi.Connection;
import io.r2dbc.spi.Readable;
import java.util.List;
import org.springframework.dao.EmptyResultDataAccessException;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.stereotype.Repository;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/**
 * Repository for the {@code world} table. It runs a request's SELECTs on a single connection, and writes all rows with
 * a single UPDATE.
 */
@Repository
class WorldRepository {

    /** Maximum number of statements in flight per connection; more could overflow the client's queue. */
    private static final int PIPELINED = 64;

    private static final String SELECT = "SELECT id, randomnumber FROM world WHERE id = $1";
    private static final String UPDATE = """
            UPDATE world SET randomnumber = changed.number
            FROM unnest($1::int[], $2::int[]) AS changed(id, number) WHERE world.id = changed.id""";

    private final DatabaseClient database;

    WorldRepository(DatabaseClient database) {
        this.database = database;
    }

    /** Returns a random row. */
    Mono<World> random() {
        return database.inConnection(connection -> select(connection, Draw.id()));
    }

    /** Returns {@code count} random rows. They are drawn independently, so rows may repeat. */
    Flux<World> random(int count) {
        return database.inConnectionMany(connection -> select(connection, Draw.ids(count)));
    }

    /** Updates {@code count} distinct rows and returns them. */
    Mono<List<World>> updateRandom(int count) {
        return database.inConnection(connection -> select(connection, Draw.differentIds(count))
                .map(Draw::withOtherNumber)
                .collectList()
                .flatMap(changed -> update(connection, changed).thenReturn(changed)));
    }

    private static Flux<World> select(Connection connection, int[] ids) {
        return Flux.range(0, ids.length).flatMapSequential(i -> select(connection, ids[i]), PIPELINED);
    }

    private static Mono<World> select(Connection connection, int id) {
        return Mono.from(connection.createStatement(SELECT).bind(0, id).execute())
                .flatMap(result -> Mono.from(result.map(WorldRepository::world)))
                .switchIfEmpty(Mono.error(() -> new EmptyResultDataAccessException(1)));
    }

    private static Mono<Long> update(Connection connection, List<World> changed) {
        Integer[] ids = changed.stream().map(World::id).toArray(Integer[]::new);
        Integer[] numbers = changed.stream().map(World::randomNumber).toArray(Integer[]::new);
        return Mono.from(connection.createStatement(UPDATE).bind(0, ids).bind(1, numbers).execute())
                .flatMap(result -> Mono.from(result.getRowsUpdated()));
    }

    private static World world(Readable row) {
        return new World(row.get(0, Integer.class), row.get(1, Integer.class));
    }
}
