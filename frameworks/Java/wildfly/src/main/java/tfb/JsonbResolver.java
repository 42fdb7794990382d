package tfb;

import jakarta.json.bind.Jsonb;
import jakarta.json.bind.JsonbBuilder;
import jakarta.ws.rs.ext.ContextResolver;
import jakarta.ws.rs.ext.Provider;

/** Provides one {@link Jsonb} for all responses, because each instance has its own cache of serializers. */
@Provider
public final class JsonbResolver implements ContextResolver<Jsonb> {

    private final Jsonb jsonb = JsonbBuilder.create();

    @Override
    public Jsonb getContext(Class<?> type) {
        return jsonb;
    }
}
