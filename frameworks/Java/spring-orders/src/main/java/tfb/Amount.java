package tfb;

import jakarta.validation.constraints.Max;
import jakarta.validation.constraints.Min;
import jakarta.validation.constraints.NotNull;

/** The body that adds an item to an order: the number of pieces. */
record Amount(@NotNull @Min(1) @Max(100) Integer quantity) {
}
