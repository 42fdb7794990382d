package tfb;

import io.smallrye.mutiny.Uni;
import jakarta.ws.rs.WebApplicationException;
import org.hibernate.HibernateException;

/** Replaces the many exception classes of reactive clients; the response is 503. */
final class DatabaseUnavailable {

    private DatabaseUnavailable() {}

    static <T> Uni<T> unless(Uni<T> work) {
        return work.onFailure(failure -> !(failure instanceof WebApplicationException))
                .transform(failure -> new HibernateException(failure));
    }
}
