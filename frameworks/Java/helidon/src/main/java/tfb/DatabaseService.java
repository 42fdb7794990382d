package tfb;

import com.fasterxml.jackson.core.JsonProcessingException;
import io.helidon.http.HttpMediaType;
import io.helidon.webserver.http.ServerRequest;
import io.helidon.webserver.http.ServerResponse;
import java.sql.SQLException;
import java.util.Comparator;
import java.util.List;
import javax.sql.DataSource;

/** Handles /db, /queries, /updates, /cached-queries and /fortunes. */
final class DatabaseService {

    private static final HttpMediaType TEXT_HTML = HttpMediaType.create("text/html; charset=utf-8");
    private static final Comparator<Fortune> BY_MESSAGE = Comparator.comparing(Fortune::message);

    private final WorldRepository worlds;
    private final WorldCache cache;
    private final FortuneRepository fortunes;
    private final FortunesPageRenderer template = FortunesPageRenderer.of();

    DatabaseService(DataSource database) {
        this.worlds = new WorldRepository(database);
        this.cache = new WorldCache(worlds);
        this.fortunes = new FortuneRepository(database);
    }

    void db(ServerRequest request, ServerResponse response) throws SQLException, JsonProcessingException {
        Json.send(response, worlds.random(1)[0]);
    }

    void queries(ServerRequest request, ServerResponse response) throws SQLException, JsonProcessingException {
        Json.send(response, worlds.random(count(request, "queries")));
    }

    void updates(ServerRequest request, ServerResponse response) throws SQLException, JsonProcessingException {
        Json.send(response, worlds.updateRandom(count(request, "queries")));
    }

    void cachedQueries(ServerRequest request, ServerResponse response) throws SQLException, JsonProcessingException {
        Json.send(response, cache.random(count(request, "count")));
    }

    void fortunes(ServerRequest request, ServerResponse response) throws SQLException {
        List<Fortune> all = fortunes.all();
        all.add(new Fortune(0, "Additional fortune added at request time."));
        all.sort(BY_MESSAGE);
        response.headers().contentType(TEXT_HTML);
        response.send(template.execute(new FortunesPage(all)));
    }

    /** Returns the parameter, clamped to 1..500, or 1 if it is missing or not an integer. */
    private static int count(ServerRequest request, String parameter) {
        return IntegerParameter.clamp(request.query().first(parameter).orElse(null), 1, 500, 1);
    }
}
