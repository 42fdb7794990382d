package tfb;

import io.micronaut.runtime.Micronaut;
import io.micronaut.serde.annotation.SerdeImport;

/** Starts the server. */
@SerdeImport(FanOut.class)
@SerdeImport(Message.class)
@SerdeImport(World.class)
public final class Application {

    private Application() {}

    public static void main(String[] args) {
        Micronaut.build(args).mainClass(Application.class).banner(false).start();
    }
}
