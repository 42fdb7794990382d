package tfb;

import com.fasterxml.jackson.databind.ObjectMapper;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.PathParam;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.ServiceUnavailableException;
import jakarta.ws.rs.core.HttpHeaders;
import jakarta.ws.rs.core.MediaType;
import jakarta.ws.rs.core.Response;
import java.io.File;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.List;
import org.jboss.resteasy.annotations.GZIP;

/** Responds with the first items of the data set and their totals. */
@Path("json/{count}")
public class ItemResource {

    private static final int MAX_MULTIPLIER = 1_000_000;

    private final List<Item> items;

    /** @param file the data set, a JSON array of items, or null if none is configured */
    public ItemResource(String file) {
        try {
            items = file == null ? null : List.of(new ObjectMapper().readValue(new File(file), Item[].class));
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }

    @GET
    @GZIP
    @Produces(MediaType.APPLICATION_JSON)
    public Response items(@PathParam("count") IntegerParameter count, @QueryParam("m") IntegerParameter m) {
        if (items == null) {
            throw new ServiceUnavailableException();
        }
        int multiplier = IntegerParameter.clamp(m, 1, 1, MAX_MULTIPLIER);
        List<Item.WithTotal> page = items.stream()
                .limit(IntegerParameter.clamp(count, 0, 0, items.size()))
                .map(item -> item.times(multiplier))
                .toList();
        return Response.ok(new Item.Page(page, page.size()))
                .header(HttpHeaders.VARY, HttpHeaders.ACCEPT_ENCODING)
                .build();
    }
}
