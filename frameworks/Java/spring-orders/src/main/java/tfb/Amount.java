package tfb;

import jakarta.validation.constraints.Max;
import jakarta.validation.constraints.Min;
import jakarta.validation.constraints.NotNull;

/** The request body for adding an item to an order: the quantity. */
record Amount(@NotNull @Min(1) @Max(100) Integer quantity) {
}
