package tfb;

import io.quarkus.vertx.core.runtime.context.VertxContextSafetyToggle;
import io.smallrye.common.vertx.VertxContext;
import io.smallrye.mutiny.Uni;
import io.smallrye.mutiny.infrastructure.Infrastructure;
import io.vertx.core.Context;
import io.vertx.core.Vertx;
import jakarta.enterprise.context.ApplicationScoped;
import java.util.function.Function;
import org.hibernate.reactive.mutiny.Mutiny.Session;
import org.hibernate.reactive.mutiny.Mutiny.SessionFactory;

/**
 * Opens Hibernate Reactive sessions for callers on a worker thread. Each session runs on an event loop, in a duplicated
 * Vert.x context that is marked as safe. The result is emitted on a worker thread.
 */
@ApplicationScoped
class Sessions {

    private final SessionFactory factory;
    private final Vertx vertx;

    Sessions(SessionFactory factory, Vertx vertx) {
        this.factory = factory;
        this.vertx = vertx;
    }

    <T> Uni<T> withSession(Function<Session, Uni<T>> work) {
        return onEventLoop(DatabaseUnavailable.unless(factory.withSession(work)));
    }

    <T> Uni<T> withTransaction(Function<Session, Uni<T>> work) {
        return onEventLoop(DatabaseUnavailable.unless(factory.withTransaction(work)));
    }

    private <T> Uni<T> onEventLoop(Uni<T> work) {
        Context context = VertxContext.createNewDuplicatedContext(vertx.getOrCreateContext());
        VertxContextSafetyToggle.setContextSafe(context, true);
        return work
                .runSubscriptionOn(subscription -> context.runOnContext(now -> subscription.run()))
                .emitOn(Infrastructure.getDefaultWorkerPool());
    }
}
