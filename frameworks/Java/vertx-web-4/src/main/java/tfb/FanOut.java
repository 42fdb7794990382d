package tfb;

/** The response body of /fan-out. */
public record FanOut(int calls, long sum) {}
