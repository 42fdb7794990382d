package tfb;

import java.nio.file.Path;
import java.util.List;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.http.HttpHeaders;
import org.springframework.http.HttpStatus;
import org.springframework.http.MediaType;
import org.springframework.http.ResponseEntity;
import org.springframework.util.MultiValueMap;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;
import tools.jackson.databind.json.JsonMapper;

/** Responds with the first items of the data set and their totals. */
@RestController
class ItemsController {

    private final List<Item> items;

    /** @param file the data set, a JSON array of items, or null if none is configured */
    ItemsController(JsonMapper json, @Value("${DATASET:#{null}}") Path file) {
        items = file == null ? null : List.of(json.readValue(file, Item[].class));
    }

    @GetMapping(path = "/json/{count}", produces = MediaType.APPLICATION_JSON_VALUE)
    ResponseEntity<Item.Page> items(
            @PathVariable String count, @RequestParam MultiValueMap<String, String> parameters) {
        if (items == null) {
            throw new ResponseStatusException(HttpStatus.SERVICE_UNAVAILABLE);
        }
        int multiplier = Parameters.multiplier(parameters);
        List<Item.WithTotal> page = items.stream()
                .limit(IntegerParameter.clamp(count, 0, items.size(), 0))
                .map(item -> item.times(multiplier))
                .toList();
        return ResponseEntity.ok().varyBy(HttpHeaders.ACCEPT_ENCODING).body(new Item.Page(page, page.size()));
    }
}
