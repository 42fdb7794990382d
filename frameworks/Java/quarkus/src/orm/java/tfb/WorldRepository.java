package tfb;

import jakarta.enterprise.context.ApplicationScoped;
import jakarta.transaction.Transactional;
import java.util.List;
import java.util.stream.Stream;
import org.hibernate.ObjectNotFoundException;
import org.hibernate.Session;
import org.hibernate.StatelessSession;

/**
 * Repository for the {@code world} table. Reads each row with a separate SELECT. Read-only requests use a stateless
 * session, which does not track entities. For updates, Hibernate writes the changes in a single batch.
 */
@ApplicationScoped
class WorldRepository {

    private final StatelessSession reading;
    private final Session session;

    WorldRepository(StatelessSession reading, Session session) {
        this.reading = reading;
        this.session = session;
    }

    /** Returns a random row. */
    World random() {
        int id = Draw.id();
        return found(reading.get(World.class, id), id);
    }

    /** Returns {@code count} random rows. They are drawn independently, so rows may repeat. */
    List<World> random(int count) {
        return Stream.generate(this::random).limit(count).toList();
    }

    /** Updates {@code count} distinct rows and returns them. */
    @Transactional
    List<World> updateRandom(int count) {
        List<World> worlds =
                Draw.distinctIds(count).stream().map(id -> found(session.find(World.class, id), id)).toList();
        worlds.forEach(world -> world.setRandomNumber(Draw.numberOtherThan(world.getRandomNumber())));
        return worlds;
    }

    private static World found(World world, int id) {
        if (world == null) {
            throw new ObjectNotFoundException(World.class.getName(), id);
        }
        return world;
    }
}
