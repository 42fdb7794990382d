package tfb;

import jakarta.validation.constraints.Max;
import jakarta.validation.constraints.Min;
import jakarta.validation.constraints.NotNull;

/** An item in the request body of POST /orders. */
public record NewOrderItem(@NotNull Integer itemId, @NotNull @Min(1) @Max(100) Integer quantity) {}
