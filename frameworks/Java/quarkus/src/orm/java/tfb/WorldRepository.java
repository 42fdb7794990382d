package tfb;

import jakarta.enterprise.context.ApplicationScoped;
import jakarta.transaction.Transactional;
import java.util.List;
import org.hibernate.Session;

/** The table world: rows are read one SELECT each; Hibernate writes what has changed in one batch. */
@ApplicationScoped
class WorldRepository {

    private final Session session;

    WorldRepository(Session session) {
        this.session = session;
    }

    /** One row. */
    World random() {
        return session.find(World.class, Draw.id());
    }

    /** {@code count} different rows. */
    @Transactional
    List<World> random(int count) {
        return Draw.ids(count).stream().map(id -> session.find(World.class, id)).toList();
    }

    /** {@code count} different rows, each with a new number. */
    @Transactional
    List<World> updateRandom(int count) {
        List<World> worlds = random(count);
        worlds.forEach(world -> world.setRandomNumber(Draw.numberOtherThan(world.getRandomNumber())));
        return worlds;
    }
}
