package tfb;

/** The answer of /fan-out. */
public record Sum(int calls, long sum) {}
