package tfb;

import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import java.sql.SQLException;

/** Single query, multiple queries, updates. */
@Path("/")
@Produces(MediaType.APPLICATION_JSON)
public class WorldResource {

    private final WorldRepository worlds;

    public WorldResource(WorldRepository worlds) {
        this.worlds = worlds;
    }

    @GET
    @Path("db")
    public World db() throws SQLException {
        return worlds.random(1)[0];
    }

    @GET
    @Path("queries")
    public World[] queries(@QueryParam("queries") @DefaultValue("1") QueryCount queries) throws SQLException {
        return worlds.random(queries.value());
    }

    @GET
    @Path("updates")
    public World[] updates(@QueryParam("queries") @DefaultValue("1") QueryCount queries) throws SQLException {
        return worlds.updateRandom(queries.value());
    }
}
