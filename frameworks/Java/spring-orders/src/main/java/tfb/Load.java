package tfb;

import jakarta.validation.constraints.Max;
import jakarta.validation.constraints.Min;
import jakarta.validation.constraints.NotNull;

/** The request body for a data load: the number of orders to create. */
record Load(@NotNull @Min(1) @Max(1000) Integer orders) {
}
