package tfb;

import io.smallrye.common.annotation.NonBlocking;
import io.smallrye.mutiny.Uni;
import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import java.util.List;

/** Database endpoints that run on the event loop of the client's connection. */
@Path("eventloop")
@NonBlocking
@Produces(MediaType.APPLICATION_JSON)
public class EventLoopDatabaseResource {

    private final ReactiveWorldRepository worlds;
    private final ReactiveWorldCache cache;
    private final ReactiveFortuneRepository fortunes;

    EventLoopDatabaseResource(
            ReactiveWorldRepository worlds, ReactiveWorldCache cache, ReactiveFortuneRepository fortunes) {
        this.worlds = worlds;
        this.cache = cache;
        this.fortunes = fortunes;
    }

    @GET
    @Path("db")
    public Uni<World> db() {
        return unavailable(worlds.random());
    }

    @GET
    @Path("queries")
    public Uni<List<World>> queries(@QueryParam("queries") @DefaultValue("1") QueryCount queries) {
        return unavailable(worlds.random(queries.value()));
    }

    @GET
    @Path("updates")
    public Uni<List<World>> updates(@QueryParam("queries") @DefaultValue("1") QueryCount queries) {
        return unavailable(worlds.updateRandom(queries.value()));
    }

    @GET
    @Path("cached-queries")
    public Uni<World[]> cachedQueries(@QueryParam("count") @DefaultValue("1") QueryCount count) {
        return unavailable(cache.random(count.value()));
    }

    @GET
    @Path("fortunes")
    @Produces("text/html; charset=utf-8")
    public Uni<String> fortunes() {
        return unavailable(fortunes.all()).map(FortunesPage::of);
    }

    private static <T> Uni<T> unavailable(Uni<T> answer) {
        return answer.onFailure().transform(DatabaseUnavailableException::new);
    }
}
