package tfb;

/** The response of /fan-out. */
public record FanOut(int calls, long sum) {}
