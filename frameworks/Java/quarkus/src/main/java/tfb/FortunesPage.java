package tfb;

import io.quarkus.qute.CheckedTemplate;
import io.quarkus.qute.TemplateInstance;
import java.util.Comparator;
import java.util.List;

/** The /fortunes page. */
final class FortunesPage {

    private static final Comparator<Fortune> BY_MESSAGE = Comparator.comparing(Fortune::message);

    private FortunesPage() {}

    /** Renders the given rows and the additional fortune, sorted by message. */
    static String of(List<Fortune> rows) {
        rows.add(new Fortune(0, "Additional fortune added at request time."));
        rows.sort(BY_MESSAGE);
        return Templates.fortunes(rows).render();
    }

    /** Qute checks templates/fortunes.html against these types at build time. */
    @CheckedTemplate(basePath = "")
    static final class Templates {

        private Templates() {}

        static native TemplateInstance fortunes(List<Fortune> fortunes);
    }
}
