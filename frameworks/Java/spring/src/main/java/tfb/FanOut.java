package tfb;

/** The answer of /fan-out. */
public record FanOut(int calls, long sum) {}
