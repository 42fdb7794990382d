package tfb;

import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import java.sql.SQLException;

/** Handles /db, /queries, /updates and /cached-queries. */
@Path("/")
@Produces(MediaType.APPLICATION_JSON)
public class WorldResource {

    private static final int MAX_ROWS = 500;

    private final WorldRepository worlds;
    private final WorldCache cache;

    public WorldResource(WorldRepository worlds, WorldCache cache) {
        this.worlds = worlds;
        this.cache = cache;
    }

    @GET
    @Path("db")
    public World db() throws SQLException {
        return worlds.random(1)[0];
    }

    @GET
    @Path("queries")
    public World[] queries(@QueryParam("queries") IntegerParameter queries) throws SQLException {
        return worlds.random(rows(queries));
    }

    @GET
    @Path("updates")
    public World[] updates(@QueryParam("queries") IntegerParameter queries) throws SQLException {
        return worlds.updateRandom(rows(queries));
    }

    @GET
    @Path("cached-queries")
    public World[] cachedQueries(@QueryParam("count") IntegerParameter count) throws SQLException {
        return cache.random(rows(count));
    }

    private static int rows(IntegerParameter parameter) {
        return IntegerParameter.clamp(parameter, 1, 1, MAX_ROWS);
    }
}
