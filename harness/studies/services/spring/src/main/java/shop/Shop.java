package shop;

import java.util.List;
import java.util.stream.IntStream;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.http.HttpStatus;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.RestController;
import org.springframework.web.server.ResponseStatusException;

/** A small shop. Each {@code item} request first runs BURN loop iterations, which simulate a performance regression. */
@SpringBootApplication
@RestController
public class Shop {
    record Item(int id, String name, int price, List<String> tags) {}

    record Line(int id, int count, int price) {}

    record Order(List<Line> lines) {}

    record Bill(List<Line> lines, int total) {}

    private static final int BURN = Integer.parseInt(System.getenv().getOrDefault("BURN", "0"));
    private static final List<Item> ITEMS = IntStream.range(0, 1000)
            .mapToObj(i -> new Item(i + 1, "item " + (i + 1), i * 37 % 900 + 99, List.of("new", "small")))
            .toList();
    private static volatile int sink;

    private static void waste(int turns) {
        int state = 1;
        for (int turn = 0; turn < turns; turn++) {
            state = state * 1664525 + 1013904223;
        }
        sink = state;
    }

    @GetMapping("/items")
    List<Item> items(@RequestParam("start") int start) {
        return ITEMS.subList(start, start + 20);
    }

    @GetMapping("/items/{id}")
    Item item(@PathVariable("id") int id) {
        waste(BURN);
        if (id < 1 || id > ITEMS.size()) {
            throw new ResponseStatusException(HttpStatus.NOT_FOUND);
        }
        return ITEMS.get(id - 1);
    }

    @PostMapping("/orders")
    Bill order(@RequestBody Order asked) {
        List<Line> lines = asked.lines().stream()
                .map(line -> new Line(line.id(), line.count(), ITEMS.get(line.id() - 1).price() * line.count()))
                .toList();
        return new Bill(lines, lines.stream().mapToInt(Line::price).sum());
    }

    public static void main(String[] arguments) {
        SpringApplication.run(Shop.class, arguments);
    }
}
