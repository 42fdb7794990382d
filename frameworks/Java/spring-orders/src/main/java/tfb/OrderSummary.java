package tfb;

import com.fasterxml.jackson.annotation.JsonFormat;
import java.math.BigDecimal;

/** An order without its items. */
record OrderSummary(Long id, Integer customerId, String card,
        @JsonFormat(shape = JsonFormat.Shape.STRING) BigDecimal total) {
}
