package tfb;

import com.fasterxml.jackson.annotation.JsonFormat;
import java.math.BigDecimal;

/** An order without its items, as GET /orders lists it. */
public record OrderSummary(
        long id, int customerId, String card, @JsonFormat(shape = JsonFormat.Shape.STRING) BigDecimal total) {}
