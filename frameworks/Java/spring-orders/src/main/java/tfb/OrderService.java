package tfb;

import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.springframework.data.domain.Limit;
import org.springframework.http.HttpStatus;
import org.springframework.stereotype.Service;
import org.springframework.transaction.annotation.Transactional;
import org.springframework.web.server.ResponseStatusException;

/** The operations on orders. Each method runs in a transaction. */
@Service
@Transactional
class OrderService {

    private static final String LOADED_CARD = "4111111111111111";
    private static final int SEEDED = 1000;

    private final OrderRepository orders;
    private final OrderItemRepository orderItems;
    private final CustomerRepository customers;
    private final ItemRepository items;

    OrderService(OrderRepository orders, OrderItemRepository orderItems, CustomerRepository customers,
            ItemRepository items) {
        this.orders = orders;
        this.orderItems = orderItems;
        this.customers = customers;
        this.items = items;
    }

    OrderView create(NewOrder wanted) {
        Customer customer = customers.findById(wanted.customerId())
                .orElseThrow(() -> bad("There is no customer " + wanted.customerId()));
        Map<Integer, Item> found = items(wanted.items().stream().map(NewOrder.Line::itemId).toList());
        Order order = new Order(customer, wanted.card());
        for (NewOrder.Line line : wanted.items()) {
            order.add(known(found, line.itemId()), line.quantity());
        }
        return OrderView.of(orders.save(order));
    }

    /** Creates {@code count} orders with one item each. */
    void load(int count) {
        Map<Integer, Item> found = items(IntStream.rangeClosed(1, Math.min(count, SEEDED)).boxed().toList());
        orders.saveAll(IntStream.range(0, count).mapToObj(k -> {
            int number = 1 + k % SEEDED;
            Order order = new Order(customers.getReferenceById(number), LOADED_CARD);
            order.add(known(found, number), 1);
            return order;
        }).toList());
    }

    @Transactional(readOnly = true)
    List<OrderSummary> newest(int limit) {
        return orders.findAllByOrderByIdDesc(Limit.of(limit));
    }

    @Transactional(readOnly = true)
    OrderView read(long id) {
        return OrderView.of(orders.findWithItemsById(id).orElseThrow(() -> noOrder(id)));
    }

    @Transactional(readOnly = true)
    OrderView.Line item(long id, int itemId) {
        return orderItems.findById(new OrderItem.Key(id, itemId))
                .map(OrderView.Line::of)
                .orElseThrow(() -> noItem(id, itemId));
    }

    OrderView changeCard(long id, String card) {
        Order order = locked(id);
        order.setCard(card);
        return OrderView.of(order);
    }

    void delete(long id) {
        if (orders.deleteOne(id) == 0) {
            throw noOrder(id);
        }
    }

    OrderView addItem(long id, int itemId, int quantity) {
        Order order = locked(id);
        Item item = items.findById(itemId).orElseThrow(() -> bad("There is no item " + itemId));
        if (order.contains(itemId)) {
            throw new ResponseStatusException(HttpStatus.CONFLICT, "Order " + id + " already contains item " + itemId);
        }
        order.add(item, quantity);
        return OrderView.of(order);
    }

    void deleteItem(long id, int itemId) {
        if (!locked(id).remove(itemId)) {
            throw noItem(id, itemId);
        }
    }

    private Order locked(long id) {
        return orders.findLockedById(id).orElseThrow(() -> noOrder(id));
    }

    private Map<Integer, Item> items(List<Integer> ids) {
        return items.findAllById(ids).stream().collect(Collectors.toMap(Item::getId, Function.identity()));
    }

    private static Item known(Map<Integer, Item> found, int itemId) {
        Item item = found.get(itemId);
        if (item == null) {
            throw bad("There is no item " + itemId);
        }
        return item;
    }

    private static ResponseStatusException bad(String reason) {
        return new ResponseStatusException(HttpStatus.BAD_REQUEST, reason);
    }

    private static ResponseStatusException noOrder(long id) {
        return new ResponseStatusException(HttpStatus.NOT_FOUND, "There is no order " + id);
    }

    private static ResponseStatusException noItem(long id, int itemId) {
        return new ResponseStatusException(HttpStatus.NOT_FOUND, "Order " + id + " has no item " + itemId);
    }
}
