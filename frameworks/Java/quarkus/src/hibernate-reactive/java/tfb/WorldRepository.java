package tfb;

import io.smallrye.mutiny.Multi;
import io.smallrye.mutiny.Uni;
import jakarta.enterprise.context.ApplicationScoped;
import java.util.List;
import org.hibernate.ObjectNotFoundException;
import org.hibernate.reactive.mutiny.Mutiny.Session;
import org.hibernate.reactive.mutiny.Mutiny.SessionFactory;
import org.hibernate.reactive.mutiny.Mutiny.StatelessSession;

/**
 * Repository for the {@code world} table. A session runs one statement at a time, so rows are read in sequence.
 * Read-only requests use a stateless session, which does not track entities. For updates, Hibernate writes the changes
 * in a single batch.
 */
@ApplicationScoped
class WorldRepository {

    private final SessionFactory sessions;

    WorldRepository(SessionFactory sessions) {
        this.sessions = sessions;
    }

    /** Returns a random row. */
    Uni<World> random() {
        return sessions.withStatelessSession(WorldRepository::random);
    }

    /** Returns {@code count} random rows. They are drawn independently, so rows may repeat. */
    Uni<List<World>> random(int count) {
        return sessions.withStatelessSession(session ->
                Multi.createBy().repeating().uni(() -> random(session)).atMost(count).collect().asList());
    }

    /** Updates {@code count} distinct rows and returns them. */
    Uni<List<World>> updateRandom(int count) {
        return sessions.withTransaction(session -> find(session, count).invoke(worlds ->
                worlds.forEach(world -> world.setRandomNumber(Draw.numberOtherThan(world.getRandomNumber())))));
    }

    private static Uni<World> random(StatelessSession session) {
        int id = Draw.id();
        return found(session.get(World.class, id), id);
    }

    private static Uni<List<World>> find(Session session, int count) {
        return Multi.createFrom().iterable(Draw.distinctIds(count))
                .onItem().transformToUniAndConcatenate(id -> found(session.find(World.class, id), id))
                .collect().asList();
    }

    private static Uni<World> found(Uni<World> world, int id) {
        return world.onItem().ifNull().failWith(() -> new ObjectNotFoundException(World.class.getName(), id));
    }
}
