package tfb;

import org.springframework.util.MultiValueMap;

/** Reads query parameters. If a parameter is repeated, the first value is used. */
final class Parameters {

    private Parameters() {}

    /** Returns {@code queries}, clamped to 1..500, or 1 if it is missing or not an integer. */
    static int queries(MultiValueMap<String, String> parameters) {
        return IntegerParameter.clamp(parameters.getFirst("queries"), 1, 500, 1);
    }

    /** Returns {@code count} for cached queries, clamped to 1..500, or 1 if it is missing or not an integer. */
    static int count(MultiValueMap<String, String> parameters) {
        return IntegerParameter.clamp(parameters.getFirst("count"), 1, 500, 1);
    }

    /** Returns {@code ms} (milliseconds), clamped to 0..1000, or 0 if it is missing or not an integer. */
    static int ms(MultiValueMap<String, String> parameters) {
        return IntegerParameter.clamp(parameters.getFirst("ms"), 0, 1000, 0);
    }

    /** Returns {@code calls}, clamped to 1..100, or 1 if it is missing or not an integer. */
    static int calls(MultiValueMap<String, String> parameters) {
        return IntegerParameter.clamp(parameters.getFirst("calls"), 1, 100, 1);
    }

    /** Returns {@code m}, clamped to 1..1,000,000, or 1 if it is missing or not an integer. */
    static int multiplier(MultiValueMap<String, String> parameters) {
        return IntegerParameter.clamp(parameters.getFirst("m"), 1, 1_000_000, 1);
    }
}
