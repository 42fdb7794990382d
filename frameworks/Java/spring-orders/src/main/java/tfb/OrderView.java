package tfb;

import com.fasterxml.jackson.annotation.JsonFormat;
import java.math.BigDecimal;
import java.util.Comparator;
import java.util.List;

/** An order as it appears in responses, with items sorted by id. */
record OrderView(long id, int customerId, String card,
        @JsonFormat(shape = JsonFormat.Shape.STRING) BigDecimal total, List<Line> items) {

    static OrderView of(Order order) {
        return new OrderView(order.getId(), order.getCustomer().getId(), order.getCard(), order.getTotal(),
                order.getItems().stream().map(Line::of).sorted(Comparator.comparing(Line::itemId)).toList());
    }

    record Line(int itemId, int quantity, @JsonFormat(shape = JsonFormat.Shape.STRING) BigDecimal price) {

        static Line of(OrderItem item) {
            return new Line(item.getItemId(), item.getQuantity(), item.getPrice());
        }
    }
}
