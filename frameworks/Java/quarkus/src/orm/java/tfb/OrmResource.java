package tfb;

import io.smallrye.common.annotation.Blocking;
import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import java.util.List;
import org.hibernate.StatelessSession;

/** Database endpoints that use Hibernate ORM on worker threads. */
@Path("/")
@Blocking
@Produces(MediaType.APPLICATION_JSON)
public class OrmResource {

    private final WorldRepository worlds;
    private final StatelessSession session;

    OrmResource(WorldRepository worlds, StatelessSession session) {
        this.worlds = worlds;
        this.session = session;
    }

    @GET
    @Path("db")
    public World db() {
        return worlds.random();
    }

    @GET
    @Path("queries")
    public List<World> queries(@QueryParam("queries") @DefaultValue("1") QueryCount queries) {
        return worlds.random(queries.value());
    }

    @GET
    @Path("updates")
    public List<World> updates(@QueryParam("queries") @DefaultValue("1") QueryCount queries) {
        return worlds.updateRandom(queries.value());
    }

    @GET
    @Path("fortunes")
    @Produces("text/html; charset=utf-8")
    public String fortunes() {
        return FortunesPage.of(session.createSelectionQuery("from Fortune", Fortune.class).getResultList());
    }
}
