package tfb;

import jakarta.validation.Valid;
import jakarta.validation.constraints.AssertTrue;
import jakarta.validation.constraints.Max;
import jakarta.validation.constraints.Min;
import jakarta.validation.constraints.NotNull;
import jakarta.validation.constraints.Pattern;
import jakarta.validation.constraints.Size;
import java.util.List;
import java.util.Objects;

/** The request body for creating an order. */
record NewOrder(
        @NotNull Integer customerId,
        @NotNull @Pattern(regexp = CARD) String card,
        @NotNull @Size(min = 1, max = 20) List<@NotNull @Valid Line> items) {

    static final String CARD = "[0-9]{12,19}";

    record Line(@NotNull Integer itemId, @NotNull @Min(1) @Max(100) Integer quantity) {
    }

    @AssertTrue(message = "must not contain the same item twice")
    boolean isEachItemOnce() {
        return items == null || items.stream().filter(Objects::nonNull).map(Line::itemId).distinct().count()
                == items.stream().filter(Objects::nonNull).count();
    }
}
