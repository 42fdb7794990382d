package tfb;

import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;

/** Starts Spring Boot with a connection pool whose size depends on the number of CPUs. */
@SpringBootApplication
public class Application {

    /** Database connections per CPU. ../resteasy/README.md describes the measurement. */
    private static final int CONNECTIONS_PER_CPU = 8;

    public static void main(String[] args) {
        SpringApplication application = new SpringApplication(Application.class);
        // application.properties refers to this property.
        application.setDefaultProperties(Map.of(
                "database.connections", CONNECTIONS_PER_CPU * Runtime.getRuntime().availableProcessors()));
        application.run(args);
    }
}
