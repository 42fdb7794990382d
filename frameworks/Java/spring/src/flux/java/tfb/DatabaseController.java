package tfb;

import java.util.List;
import org.springframework.http.MediaType;
import org.springframework.r2dbc.core.DatabaseClient;
import org.springframework.util.MultiValueMap;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import reactor.core.publisher.Flux;
import reactor.core.publisher.Mono;

/** Handlers for the endpoints that use the database. */
@RestController
class DatabaseController {

    private final WorldRepository worlds;
    private final CachedWorldRepository cachedWorlds;
    private final DatabaseClient database;

    DatabaseController(WorldRepository worlds, CachedWorldRepository cachedWorlds, DatabaseClient database) {
        this.worlds = worlds;
        this.cachedWorlds = cachedWorlds;
        this.database = database;
    }

    @GetMapping(path = "/db", produces = MediaType.APPLICATION_JSON_VALUE)
    Mono<World> db() {
        return worlds.random();
    }

    @GetMapping(path = "/queries", produces = MediaType.APPLICATION_JSON_VALUE)
    Mono<List<World>> queries(@RequestParam MultiValueMap<String, String> parameters) {
        return worlds.random(Parameters.queries(parameters)).collectList();
    }

    @GetMapping(path = "/updates", produces = MediaType.APPLICATION_JSON_VALUE)
    Mono<List<World>> updates(@RequestParam MultiValueMap<String, String> parameters) {
        return worlds.updateRandom(Parameters.queries(parameters));
    }

    @GetMapping(path = "/cached-queries", produces = MediaType.APPLICATION_JSON_VALUE)
    Mono<List<World>> cachedQueries(@RequestParam MultiValueMap<String, String> parameters) {
        int[] ids = Draw.ids(Parameters.count(parameters));
        return Flux.range(0, ids.length).flatMapSequential(i -> cachedWorlds.find(ids[i])).collectList();
    }

    @GetMapping(path = "/fortunes", produces = "text/html; charset=utf-8")
    Mono<String> fortunes() {
        return database.sql("SELECT id, message FROM fortune")
                .map(row -> new Fortune(row.get(0, Integer.class), row.get(1, String.class)))
                .all()
                .collectList()
                .map(FortunesPage::of);
    }
}
