package tfb;

import com.fasterxml.jackson.annotation.JsonFormat;
import java.math.BigDecimal;

/** An ordered item as it appears in responses. */
public record OrderItemView(
        int itemId, int quantity, @JsonFormat(shape = JsonFormat.Shape.STRING) BigDecimal price) {}
