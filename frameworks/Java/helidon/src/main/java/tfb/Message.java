package tfb;

/** The answer of /json. */
public record Message(String message) {}
