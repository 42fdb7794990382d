package tfb;

import io.jstach.jstache.JStache;
import java.util.List;

/** The /fortunes page. JStachio compiles the template to Java, and encodes the static parts as UTF-8 at build time. */
@JStache(path = "fortunes.mustache")
public record FortunesPage(List<Fortune> fortunes) {}
