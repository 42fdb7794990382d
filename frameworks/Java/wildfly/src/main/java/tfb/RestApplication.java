package tfb;

import jakarta.ws.rs.ApplicationPath;
import jakarta.ws.rs.core.Application;

/** Everything below / is Jakarta REST. */
@ApplicationPath("/")
public class RestApplication extends Application {}
