package tfb;

import io.micronaut.http.HttpParameters;
import io.micronaut.http.HttpResponse;
import io.micronaut.http.annotation.Controller;
import io.micronaut.http.annotation.Get;
import io.micronaut.scheduling.TaskExecutors;
import io.micronaut.scheduling.annotation.ExecuteOn;
import java.sql.SQLException;
import java.util.Comparator;
import java.util.List;

/** Database endpoints, which use blocking JDBC on virtual threads. */
@Controller
@ExecuteOn(TaskExecutors.BLOCKING)
final class DatabaseController {

    private static final String TEXT_HTML = "text/html; charset=utf-8";
    private static final Comparator<Fortune> BY_MESSAGE = Comparator.comparing(Fortune::message);

    private final WorldRepository worlds;
    private final WorldCache cache;
    private final FortuneRepository fortunes;
    private final FortunesPageRenderer template = FortunesPageRenderer.of();

    DatabaseController(WorldRepository worlds, WorldCache cache, FortuneRepository fortunes) {
        this.worlds = worlds;
        this.cache = cache;
        this.fortunes = fortunes;
    }

    @Get(uri = "/db", headRoute = false)
    World db() throws SQLException {
        return worlds.random(1)[0];
    }

    @Get(uri = "/queries", headRoute = false)
    World[] queries(HttpParameters parameters) throws SQLException {
        return worlds.random(count(parameters, "queries"));
    }

    @Get(uri = "/updates", headRoute = false)
    World[] updates(HttpParameters parameters) throws SQLException {
        return worlds.updateRandom(count(parameters, "queries"));
    }

    @Get(uri = "/cached-queries", headRoute = false)
    World[] cachedQueries(HttpParameters parameters) throws SQLException {
        return cache.random(count(parameters, "count"));
    }

    @Get(uri = "/fortunes", headRoute = false)
    HttpResponse<String> fortunes() throws SQLException {
        List<Fortune> all = fortunes.all();
        all.add(new Fortune(0, "Additional fortune added at request time."));
        all.sort(BY_MESSAGE);
        return HttpResponse.ok(template.execute(new FortunesPage(all))).contentType(TEXT_HTML);
    }

    /** Returns the parameter, clamped to 1..500, or 1 if it is missing or not an integer. */
    private static int count(HttpParameters parameters, String name) {
        return IntegerParameter.clamp(parameters.get(name), 1, 500, 1);
    }
}
