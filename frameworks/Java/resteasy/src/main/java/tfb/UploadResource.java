package tfb;

import jakarta.ws.rs.POST;
import jakarta.ws.rs.Path;
import jakarta.ws.rs.Produces;
import jakarta.ws.rs.core.MediaType;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;

/** Counts the body's bytes as they arrive. */
@Path("upload")
public class UploadResource {

    @POST
    @Produces(MediaType.TEXT_PLAIN)
    public String upload(InputStream body) throws IOException {
        return Long.toString(body.transferTo(OutputStream.nullOutputStream()));
    }
}
