package tfb;

import io.jstach.jstache.JStache;
import java.util.List;

/** The page of /fortunes. JStachio compiles the template to Java, with static parts encoded as UTF-8. */
@JStache(path = "fortunes.mustache")
public record FortunesPage(List<Fortune> fortunes) {}
