package tfb;

import io.smallrye.common.annotation.RunOnVirtualThread;
import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import java.sql.SQLException;

/** Database endpoints with one virtual thread per request. */
@Path("virtual")
@RunOnVirtualThread
@Produces(MediaType.APPLICATION_JSON)
public class VirtualDatabaseResource {

    private final WorldRepository worlds;
    private final WorldCache cache;
    private final FortuneRepository fortunes;

    VirtualDatabaseResource(WorldRepository worlds, WorldCache cache, FortuneRepository fortunes) {
        this.worlds = worlds;
        this.cache = cache;
        this.fortunes = fortunes;
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

    @GET
    @Path("cached-queries")
    public World[] cachedQueries(@QueryParam("count") @DefaultValue("1") QueryCount count) throws SQLException {
        return cache.random(count.value());
    }

    @GET
    @Path("fortunes")
    @Produces("text/html; charset=utf-8")
    public String fortunes() throws SQLException {
        return FortunesPage.of(fortunes.all());
    }
}
