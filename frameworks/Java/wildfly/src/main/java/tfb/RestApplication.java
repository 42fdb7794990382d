package tfb;

import jakarta.ws.rs.ApplicationPath;
import jakarta.ws.rs.core.Application;

/** Serves all paths with Jakarta REST. */
@ApplicationPath("/")
public class RestApplication extends Application {}
