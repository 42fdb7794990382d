package tfb;

/** A row of the {@code fortune} table. */
public record Fortune(int id, String message) {}
