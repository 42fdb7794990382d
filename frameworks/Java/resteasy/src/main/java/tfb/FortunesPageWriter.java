package tfb;

import jakarta.ws.rs.Produces;
import jakarta.ws.rs.core.MediaType;
import jakarta.ws.rs.core.MultivaluedMap;
import jakarta.ws.rs.ext.MessageBodyWriter;
import jakarta.ws.rs.ext.Provider;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.annotation.Annotation;
import java.lang.reflect.Type;

/** Writes the fortunes page directly to the response, without building a string first. */
@Provider
@Produces(MediaType.TEXT_HTML)
public final class FortunesPageWriter implements MessageBodyWriter<FortunesPage> {

    private final FortunesPageRenderer template = FortunesPageRenderer.of();

    @Override
    public boolean isWriteable(Class<?> type, Type genericType, Annotation[] annotations, MediaType mediaType) {
        return type == FortunesPage.class;
    }

    @Override
    public void writeTo(FortunesPage page, Class<?> type, Type genericType, Annotation[] annotations,
            MediaType mediaType, MultivaluedMap<String, Object> headers, OutputStream body) throws IOException {
        template.write(page, body);
    }
}
