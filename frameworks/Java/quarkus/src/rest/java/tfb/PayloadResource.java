package tfb;

import io.smallrye.common.annotation.Blocking;
import jakarta.ws.rs.DefaultValue;
import jakarta.ws.rs.GET;
import jakarta.ws.rs.POST;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.PathParam;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.QueryParam;
import jakarta.ws.rs.core.MediaType;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.List;
import org.jboss.resteasy.reactive.ResponseHeader;

/** Serves items with totals and accepts uploads, on worker threads. */
@Path("/")
@Blocking
public class PayloadResource {

    private final DataSet dataSet;

    PayloadResource(DataSet dataSet) {
        this.dataSet = dataSet;
    }

    @GET
    @Path("json/{count}")
    @Produces(MediaType.APPLICATION_JSON)
    @ResponseHeader(name = "Vary", value = "Accept-Encoding")
    public Item.Page items(@PathParam("count") ItemCount count, @QueryParam("m") @DefaultValue("1") Multiplier m) {
        List<Item.WithTotal> page =
                dataSet.items().stream().limit(count.value()).map(item -> item.times(m.value())).toList();
        return new Item.Page(page, page.size());
    }

    /** Counts the body's bytes as they arrive. */
    @POST
    @Path("upload")
    @Produces(MediaType.TEXT_PLAIN)
    public long upload(InputStream body) throws IOException {
        return body.transferTo(OutputStream.nullOutputStream());
    }
}
