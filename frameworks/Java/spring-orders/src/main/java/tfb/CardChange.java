package tfb;

import jakarta.validation.constraints.NotNull;
import jakarta.validation.constraints.Pattern;

/** The card by which an order is paid from now on. */
record CardChange(@NotNull @Pattern(regexp = NewOrder.CARD) String card) {
}
