package tfb;

import org.springframework.util.MultiValueMap;

/** The parameters of the query string; of a repeated one the first counts. */
final class Parameters {

    private Parameters() {}

    /** {@code queries}, clamped to 1..500; absent, empty or not an integer means 1. */
    static int queries(MultiValueMap<String, String> parameters) {
        return Whole.clamped(parameters.getFirst("queries"), 1, 500, 1);
    }

    /** {@code ms}, milliseconds clamped to 0..1000; absent or not an integer means 0. */
    static int ms(MultiValueMap<String, String> parameters) {
        return Whole.clamped(parameters.getFirst("ms"), 0, 1000, 0);
    }

    /** {@code calls}, clamped to 1..100; absent or not an integer means 1. */
    static int calls(MultiValueMap<String, String> parameters) {
        return Whole.clamped(parameters.getFirst("calls"), 1, 100, 1);
    }
}
