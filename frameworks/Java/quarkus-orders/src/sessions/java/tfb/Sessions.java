package tfb;

import io.smallrye.mutiny.Uni;
import jakarta.enterprise.context.ApplicationScoped;
import java.util.function.Function;
import org.hibernate.reactive.mutiny.Mutiny.Session;
import org.hibernate.reactive.mutiny.Mutiny.SessionFactory;

/** Opens Hibernate Reactive sessions for callers on the event loop. */
@ApplicationScoped
class Sessions {

    private final SessionFactory factory;

    Sessions(SessionFactory factory) {
        this.factory = factory;
    }

    <T> Uni<T> withSession(Function<Session, Uni<T>> work) {
        return DatabaseUnavailable.unless(factory.withSession(work));
    }

    <T> Uni<T> withTransaction(Function<Session, Uni<T>> work) {
        return DatabaseUnavailable.unless(factory.withTransaction(work));
    }
}
