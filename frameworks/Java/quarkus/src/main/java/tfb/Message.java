package tfb;

/** The response body of /json. */
public record Message(String message) {}
