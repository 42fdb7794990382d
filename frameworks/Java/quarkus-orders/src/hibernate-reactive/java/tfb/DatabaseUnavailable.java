package tfb;

import io.smallrye.mutiny.Uni;
import jakarta.ws.rs.WebApplicationException;
import org.hibernate.HibernateException;

/** Converts the many exception classes of reactive clients to HibernateException, which causes a 503. */
final class DatabaseUnavailable {

    private DatabaseUnavailable() {}

    static <T> Uni<T> unless(Uni<T> work) {
        return work.onFailure(failure -> !(failure instanceof WebApplicationException))
                .transform(failure -> new HibernateException(failure));
    }
}
