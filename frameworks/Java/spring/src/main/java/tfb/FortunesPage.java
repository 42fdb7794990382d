package tfb;

import io.jstach.jstache.JStache;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/** The /fortunes page. JStachio compiles the template to Java. */
@JStache(path = "fortunes.mustache")
public record FortunesPage(List<Fortune> fortunes) {

    private static final Comparator<Fortune> BY_MESSAGE = Comparator.comparing(Fortune::message);

    /** Renders the given rows and the additional fortune, sorted by message. */
    static String of(List<Fortune> rows) {
        List<Fortune> all = new ArrayList<>(rows);
        all.add(new Fortune(0, "Additional fortune added at request time."));
        all.sort(BY_MESSAGE);
        return FortunesPageRenderer.of().execute(new FortunesPage(all));
    }
}
