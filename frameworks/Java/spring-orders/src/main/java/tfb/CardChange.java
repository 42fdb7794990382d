package tfb;

import jakarta.validation.constraints.NotNull;
import jakarta.validation.constraints.Pattern;

/** The request body for changing an order's payment card. */
record CardChange(@NotNull @Pattern(regexp = NewOrder.CARD) String card) {
}
