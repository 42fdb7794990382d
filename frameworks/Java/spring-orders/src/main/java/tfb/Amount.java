package tfb;

import jakarta.validation.constraints.Max;
import jakarta.validation.constraints.Min;
import jakarta.validation.constraints.NotNull;

/** Number of pieces of an item. */
record Amount(@NotNull @Min(1) @Max(100) Integer quantity) {
}
