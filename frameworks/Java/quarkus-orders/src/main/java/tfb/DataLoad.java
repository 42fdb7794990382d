package tfb;

import jakarta.validation.constraints.Max;
import jakarta.validation.constraints.Min;
import jakarta.validation.constraints.NotNull;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** The request body of POST /orders/dataload: the number of one-item orders to create. */
public record DataLoad(@NotNull @Min(1) @Max(1000) Integer orders) {

    private static final String CARD = "4111111111111111";

    /** Returns the customer and item ids: 1 to {@code orders}. Order k belongs to customer k and contains item k. */
    List<Integer> ids() {
        return IntStream.rangeClosed(1, orders).boxed().toList();
    }

    List<Order> toOrders(Function<Integer, Customer> customers, List<Item> priced) {
        Map<Integer, Item> items = priced.stream().collect(Collectors.toMap(Item::getId, Function.identity()));
        List<Order> made = new ArrayList<>(orders);
        for (int id : ids()) {
            Order order = new Order(customers.apply(id), CARD);
            order.add(items.get(id), 1);
            made.add(order);
        }
        return made;
    }
}
