package tfb;

import com.fasterxml.jackson.annotation.JsonFormat;
import java.math.BigDecimal;
import java.util.List;

/** An order with its items, sorted by id. */
record Order(long id, int customerId, String card, @JsonFormat(shape = JsonFormat.Shape.STRING) BigDecimal total,
        List<Item> items) {

    /** An ordered item, with its unit price at the time of the order. */
    record Item(int itemId, int quantity, @JsonFormat(shape = JsonFormat.Shape.STRING) BigDecimal price) {

        BigDecimal cost() {
            return price.multiply(BigDecimal.valueOf(quantity));
        }
    }

    /** An order without its items. */
    record Summary(long id, int customerId, String card,
            @JsonFormat(shape = JsonFormat.Shape.STRING) BigDecimal total) {
    }
}
