package tfb;

/** The response of /json. */
public record Message(String message) {}
