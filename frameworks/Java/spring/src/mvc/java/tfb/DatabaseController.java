package tfb;

import java.util.Arrays;
import java.util.List;
import org.springframework.http.MediaType;
import org.springframework.util.MultiValueMap;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;

/** Handlers for the endpoints that use the database. */
@RestController
class DatabaseController {

    private final WorldRepository worlds;
    private final CachedWorldRepository cachedWorlds;
    private final FortuneRepository fortunes;

    DatabaseController(WorldRepository worlds, CachedWorldRepository cachedWorlds, FortuneRepository fortunes) {
        this.worlds = worlds;
        this.cachedWorlds = cachedWorlds;
        this.fortunes = fortunes;
    }

    @GetMapping(path = "/db", produces = MediaType.APPLICATION_JSON_VALUE)
    World db() {
        return worlds.random();
    }

    @GetMapping(path = "/queries", produces = MediaType.APPLICATION_JSON_VALUE)
    List<World> queries(@RequestParam MultiValueMap<String, String> parameters) {
        return worlds.random(Parameters.queries(parameters));
    }

    @GetMapping(path = "/updates", produces = MediaType.APPLICATION_JSON_VALUE)
    List<World> updates(@RequestParam MultiValueMap<String, String> parameters) {
        return worlds.updateRandom(Parameters.queries(parameters));
    }

    @GetMapping(path = "/cached-queries", produces = MediaType.APPLICATION_JSON_VALUE)
    List<World> cachedQueries(@RequestParam MultiValueMap<String, String> parameters) {
        return Arrays.stream(Draw.ids(Parameters.count(parameters))).mapToObj(cachedWorlds::find).toList();
    }

    @GetMapping(path = "/fortunes", produces = "text/html; charset=utf-8")
    String fortunes() {
        return FortunesPage.of(fortunes.all());
    }
}
