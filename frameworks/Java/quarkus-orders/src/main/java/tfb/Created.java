package tfb;

/** The response body of POST /orders/dataload: the number of created orders. */
public record Created(int created) {}
