package tfb;

import io.vertx.ext.web.RoutingContext;

/** Single query, multiple queries, updates. */
final class WorldHandlers {

    private final WorldRepository worlds;

    WorldHandlers(WorldRepository worlds) {
        this.worlds = worlds;
    }

    void db(RoutingContext ctx) {
        worlds.random().onSuccess(ctx::json).onFailure(ctx::fail);
    }

    void queries(RoutingContext ctx) {
        worlds.random(queryCount(ctx)).onSuccess(ctx::json).onFailure(ctx::fail);
    }

    void updates(RoutingContext ctx) {
        worlds.updateRandom(queryCount(ctx)).onSuccess(ctx::json).onFailure(ctx::fail);
    }

    private static int queryCount(RoutingContext ctx) {
        try {
            return QueryCount.of(ctx.request().getParam("queries"));
        } catch (IllegalArgumentException malformedQueryString) {
            return 1;
        }
    }
}
