package tfb;

import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import java.sql.SQLException;
import java.util.Comparator;
import java.util.List;

/** Handles /fortunes. The response contains the stored fortunes and an additional one, sorted by message. */
@Path("fortunes")
public class FortuneResource {

    private final FortuneRepository fortunes;

    public FortuneResource(FortuneRepository fortunes) {
        this.fortunes = fortunes;
    }

    @GET
    @Produces("text/html; charset=utf-8")
    public FortunesPage fortunes() throws SQLException {
        List<Fortune> all = fortunes.all();
        all.add(new Fortune(0, "Additional fortune added at request time."));
        all.sort(Comparator.comparing(Fortune::message));
        return new FortunesPage(all);
    }
}
