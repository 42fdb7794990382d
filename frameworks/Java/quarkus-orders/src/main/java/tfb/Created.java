package tfb;

/** The response to POST /orders/dataload. */
public record Created(int created) {}
