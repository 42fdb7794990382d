package tfb;

import jakarta.enterprise.context.ApplicationScoped;
import jakarta.transaction.Transactional;
import java.util.List;
import org.hibernate.ObjectNotFoundException;
import org.hibernate.Session;

/**
 * Repository for the {@code world} table. Reads each row with a separate SELECT; Hibernate writes changes in a single
 * batch.
 */
@ApplicationScoped
class WorldRepository {

    private final Session session;

    WorldRepository(Session session) {
        this.session = session;
    }

    /** Returns a random row. */
    World random() {
        return find(Draw.id());
    }

    /** Returns {@code count} distinct random rows. */
    @Transactional
    List<World> random(int count) {
        return Draw.ids(count).stream().map(this::find).toList();
    }

    /** Updates {@code count} distinct rows and returns them. */
    @Transactional
    List<World> updateRandom(int count) {
        List<World> worlds = random(count);
        worlds.forEach(world -> world.setRandomNumber(Draw.numberOtherThan(world.getRandomNumber())));
        return worlds;
    }

    private World find(int id) {
        World world = session.find(World.class, id);
        if (world == null) {
            throw new ObjectNotFoundException(World.class.getName(), id);
        }
        return world;
    }
}
