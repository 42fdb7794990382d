package tfb;

import com.fasterxml.jackson.annotation.JsonFormat;
import java.math.BigDecimal;
import java.util.Comparator;
import java.util.List;

/** An order as it appears in responses: amounts are strings, and items are sorted by id. */
public record OrderView(
        long id,
        int customerId,
        String card,
        @JsonFormat(shape = JsonFormat.Shape.STRING) BigDecimal total,
        List<OrderItemView> items) {

    static OrderView of(Order order) {
        List<OrderItemView> items = order.getItems().stream()
                .map(item -> new OrderItemView(item.getItemId(), item.getQuantity(), item.getPrice()))
                .sorted(Comparator.comparingInt(OrderItemView::itemId))
                .toList();
        return new OrderView(order.getId(), order.getCustomer().getId(), order.getCard(), order.getTotal(), items);
    }
}
