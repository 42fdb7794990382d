package tfb;

import java.util.Map;
import java.util.Set;
import org.eclipse.microprofile.config.spi.ConfigSource;

/** A configuration source for the number of database connections, which depends on the number of CPUs. */
public final class ConnectionCount implements ConfigSource {

    private static final String NAME = "database.connections";
    private static final int CONNECTIONS_PER_CPU = 8;

    private final String value = Integer.toString(CONNECTIONS_PER_CPU * Runtime.getRuntime().availableProcessors());

    @Override
    public Set<String> getPropertyNames() {
        return Set.of(NAME);
    }

    @Override
    public Map<String, String> getProperties() {
        return Map.of(NAME, value);
    }

    @Override
    public String getValue(String name) {
        return NAME.equals(name) ? value : null;
    }

    @Override
    public String getName() {
        return ConnectionCount.class.getSimpleName();
    }
}
