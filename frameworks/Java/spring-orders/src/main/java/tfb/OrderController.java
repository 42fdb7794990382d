package tfb;

import jakarta.validation.Valid;
import jakarta.validation.constraints.Pattern;
import java.net.URI;
import java.util.List;
import java.util.Map;
import org.springframework.http.HttpStatus;
import org.springframework.http.ResponseEntity;
import org.springframework.web.bind.annotation.DeleteMapping;
import org.springframework.web.bind.annotation.GetMapping;
import org.springframework.web.bind.annotation.PathVariable;
import org.springframework.web.bind.annotation.PostMapping;
import org.springframework.web.bind.annotation.PutMapping;
import org.springframework.web.bind.annotation.RequestBody;
import org.springframework.web.bind.annotation.RequestMapping;
import org.springframework.web.bind.annotation.RequestParam;
import org.springframework.web.bind.annotation.ResponseStatus;
import org.springframework.web.bind.annotation.RestController;

/** The /orders endpoints. The body is each method's first parameter, so that it is validated before the path. */
@RestController
@RequestMapping("/orders")
class OrderController {

    private static final int DEFAULT_LIMIT = 20;

    private final OrderService orders;

    OrderController(OrderService orders) {
        this.orders = orders;
    }

    @PostMapping
    ResponseEntity<OrderView> create(@Valid @RequestBody NewOrder wanted) {
        OrderView order = orders.create(wanted);
        return ResponseEntity.created(URI.create("/orders/" + order.id())).body(order);
    }

    /**
     * Returns the newest orders. {@code limit} is a String, because Integer would accept "+5". It has no default value
     * in the annotation, because Spring would also use that for an empty limit.
     */
    @GetMapping
    List<OrderSummary> newest(@RequestParam(required = false) @Pattern(regexp = "[1-9][0-9]?|100") String limit) {
        return orders.newest(limit == null ? DEFAULT_LIMIT : Integer.parseInt(limit));
    }

    @PostMapping("/dataload")
    @ResponseStatus(HttpStatus.CREATED)
    Map<String, Integer> load(@Valid @RequestBody Load load) {
        orders.load(load.orders());
        return Map.of("created", load.orders());
    }

    @GetMapping("/{id}")
    OrderView read(@PathVariable OrderId id) {
        return orders.read(id.value());
    }

    @PutMapping("/{id}")
    OrderView changeCard(@Valid @RequestBody CardChange change, @PathVariable OrderId id) {
        return orders.changeCard(id.value(), change.card());
    }

    @DeleteMapping("/{id}")
    @ResponseStatus(HttpStatus.NO_CONTENT)
    void delete(@PathVariable OrderId id) {
        orders.delete(id.value());
    }

    @GetMapping("/{id}/items")
    List<OrderView.Line> items(@PathVariable OrderId id) {
        return orders.read(id.value()).items();
    }

    @PostMapping("/{id}/items/{itemId}")
    @ResponseStatus(HttpStatus.CREATED)
    OrderView addItem(@Valid @RequestBody Amount amount, @PathVariable OrderId id, @PathVariable ItemId itemId) {
        return orders.addItem(id.value(), itemId.value(), amount.quantity());
    }

    @GetMapping("/{id}/items/{itemId}")
    OrderView.Line item(@PathVariable OrderId id, @PathVariable ItemId itemId) {
        return orders.item(id.value(), itemId.value());
    }

    @DeleteMapping("/{id}/items/{itemId}")
    @ResponseStatus(HttpStatus.NO_CONTENT)
    void deleteItem(@PathVariable OrderId id, @PathVariable ItemId itemId) {
        orders.deleteItem(id.value(), itemId.value());
    }
}
