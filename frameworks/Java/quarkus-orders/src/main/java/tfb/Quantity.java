package tfb;

import jakarta.validation.constraints.Max;
import jakarta.validation.constraints.Min;
import jakarta.validation.constraints.NotNull;

/** The request body of POST /orders/{id}/items/{itemId}. */
public record Quantity(@NotNull @Min(1) @Max(100) Integer quantity) {}
