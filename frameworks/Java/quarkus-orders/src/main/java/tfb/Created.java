package tfb;

/** The response of POST /orders/dataload. */
public record Created(int created) {}
