package tfb;

import io.smallrye.mutiny.Multi;
import io.smallrye.mutiny.Uni;
import jakarta.enterprise.context.ApplicationScoped;
import java.util.List;
import org.hibernate.ObjectNotFoundException;
import org.hibernate.reactive.mutiny.Mutiny.Session;
import org.hibernate.reactive.mutiny.Mutiny.SessionFactory;

/**
 * Repository for the {@code world} table. A session runs one statement at a time, so rows are read in sequence.
 * Hibernate writes changes in a single batch.
 */
@ApplicationScoped
class WorldRepository {

    private final SessionFactory sessions;

    WorldRepository(SessionFactory sessions) {
        this.sessions = sessions;
    }

    /** Returns a random row. */
    Uni<World> random() {
        return sessions.withSession(session -> findRow(session, Draw.id()));
    }

    /** Returns {@code count} distinct random rows. */
    Uni<List<World>> random(int count) {
        return sessions.withSession(session -> find(session, count));
    }

    /** Updates {@code count} distinct rows and returns them. */
    Uni<List<World>> updateRandom(int count) {
        return sessions.withTransaction(session -> find(session, count).invoke(worlds ->
                worlds.forEach(world -> world.setRandomNumber(Draw.numberOtherThan(world.getRandomNumber())))));
    }

    private static Uni<List<World>> find(Session session, int count) {
        return Multi.createFrom().iterable(Draw.ids(count))
                .onItem().transformToUniAndConcatenate(id -> findRow(session, id))
                .collect().asList();
    }

    private static Uni<World> findRow(Session session, int id) {
        return session.find(World.class, id)
                .onItem().ifNull().failWith(() -> new ObjectNotFoundException(World.class.getName(), id));
    }
}
