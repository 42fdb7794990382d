package tfb;

import com.fasterxml.jackson.annotation.JsonFormat;
import java.math.BigDecimal;

/** An item of an order in a response. */
public record OrderItemView(
        int itemId, int quantity, @JsonFormat(shape = JsonFormat.Shape.STRING) BigDecimal price) {}
