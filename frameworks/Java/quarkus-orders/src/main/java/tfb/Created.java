package tfb;

/** The answer of POST /orders/dataload. */
public record Created(int created) {}
