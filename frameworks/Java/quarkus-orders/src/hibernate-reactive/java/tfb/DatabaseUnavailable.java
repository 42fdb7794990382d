package tfb;

import io.smallrye.mutiny.Uni;
import jakarta.ws.rs.WebApplicationException;
import org.hibernate.HibernateException;

/** Wraps the reactive client's exceptions in HibernateException, which is mapped to a 503 response. */
final class DatabaseUnavailable {

    private DatabaseUnavailable() {}

    static <T> Uni<T> unless(Uni<T> work) {
        return work.onFailure(failure -> !(failure instanceof WebApplicationException))
                .transform(failure -> new HibernateException(failure));
    }
}
