package tfb;

import io.smallrye.mutiny.Uni;
import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import java.util.List;
import org.hibernate.reactive.mutiny.Mutiny.SessionFactory;

/** Database endpoints that use Hibernate Reactive on the event loop. */
@Path("/")
@Produces(MediaType.APPLICATION_JSON)
public class HibernateReactiveResource {

    private final WorldRepository worlds;
    private final SessionFactory sessions;

    HibernateReactiveResource(WorldRepository worlds, SessionFactory sessions) {
        this.worlds = worlds;
        this.sessions = sessions;
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
    @Path("fortunes")
    @Produces("text/html; charset=utf-8")
    public Uni<String> fortunes() {
        return unavailable(sessions.withStatelessSession(session ->
                session.createSelectionQuery("from Fortune", Fortune.class).getResultList())).map(FortunesPage::of);
    }

    private static <T> Uni<T> unavailable(Uni<T> answer) {
        return answer.onFailure().transform(DatabaseUnavailableException::new);
    }
}
