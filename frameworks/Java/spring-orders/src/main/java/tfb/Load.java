package tfb;

import jakarta.validation.constraints.Max;
import jakarta.validation.constraints.Min;
import jakarta.validation.constraints.NotNull;

/** How many orders a load makes. */
record Load(@NotNull @Min(1) @Max(1000) Integer orders) {
}
