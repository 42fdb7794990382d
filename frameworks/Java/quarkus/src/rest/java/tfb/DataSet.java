package tfb;

import com.fasterxml.jackson.databind.ObjectMapper;
import io.quarkus.runtime.Startup;
import jakarta.inject.Singleton;
import jakarta.ws.rs.ServiceUnavailableException;
import java.io.File;
import java.io.IOException;
import java.util.List;
import java.util.Optional;
import org.eclipse.microprofile.config.inject.ConfigProperty;

/** The data set for /json/{count}, read at startup. */
@Startup
@Singleton
class DataSet {

    private final List<Item> items;

    DataSet(ObjectMapper json, @ConfigProperty(name = "DATASET") Optional<File> file) throws IOException {
        items = file.isPresent() ? List.of(json.readValue(file.get(), Item[].class)) : null;
    }

    /** Returns all items. @throws ServiceUnavailableException if there is no data set */
    List<Item> items() {
        if (items == null) {
            throw new ServiceUnavailableException();
        }
        return items;
    }
}
