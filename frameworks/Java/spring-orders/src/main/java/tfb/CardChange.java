package tfb;

import jakarta.validation.constraints.NotNull;
import jakarta.validation.constraints.Pattern;

/** The new payment card of an order. */
record CardChange(@NotNull @Pattern(regexp = NewOrder.CARD) String card) {
}
