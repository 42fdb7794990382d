package tfb;

import java.util.Map;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.cache.annotation.EnableCaching;
import reactor.netty.ReactorNetty;

/** Starts Spring Boot. The numbers of event loops and database connections depend on the number of CPUs. */
@SpringBootApplication
@EnableCaching
public class Application {

    /** Database connections per CPU. ../resteasy/README.md describes the measurement. */
    private static final int CONNECTIONS_PER_CPU = 8;

    public static void main(String[] args) {
        int cpus = Runtime.getRuntime().availableProcessors();
        // By default, Reactor Netty starts at least four event loops, even on two CPUs.
        System.setProperty(ReactorNetty.IO_WORKER_COUNT, Integer.toString(cpus));
        SpringApplication application = new SpringApplication(Application.class);
        // application.properties refers to this property.
        application.setDefaultProperties(Map.of("database.connections", CONNECTIONS_PER_CPU * cpus));
        application.run(args);
    }
}
