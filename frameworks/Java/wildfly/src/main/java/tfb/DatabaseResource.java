package tfb;

import jakarta.inject.Inject;
import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import java.sql.SQLException;
import java.util.Comparator;
import java.util.List;

/** Endpoints that use the database. */
@Path("/")
@Produces(MediaType.APPLICATION_JSON)
public class DatabaseResource {

    @Inject
    private WorldRepository worlds;

    @Inject
    private WorldCache cache;

    @Inject
    private FortuneRepository fortunes;

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
    public FortunesPage fortunes() throws SQLException {
        List<Fortune> all = fortunes.all();
        all.add(new Fortune(0, "Additional fortune added at request time."));
        all.sort(Comparator.comparing(Fortune::message));
        return new FortunesPage(all);
    }
}
