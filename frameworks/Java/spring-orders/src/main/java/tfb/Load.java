package tfb;

import jakarta.validation.constraints.Max;
import jakarta.validation.constraints.Min;
import jakarta.validation.constraints.NotNull;

/** Number of orders that a data load creates. */
record Load(@NotNull @Min(1) @Max(1000) Integer orders) {
}
