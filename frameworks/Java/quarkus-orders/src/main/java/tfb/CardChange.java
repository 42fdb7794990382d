package tfb;

import jakarta.validation.constraints.NotNull;
import jakarta.validation.constraints.Pattern;

/** The request body of PUT /orders/{id}. */
public record CardChange(@NotNull @Pattern(regexp = NUMBER) String card) {

    static final String NUMBER = "[0-9]{12,19}";
}
