package tfb;

import io.vertx.ext.web.RoutingContext;

/** Handlers for /db, /queries, /updates and /cached-queries. */
final class WorldHandlers {

    private final WorldRepository worlds;
    private final WorldCache cache;

    WorldHandlers(WorldRepository worlds, WorldCache cache) {
        this.worlds = worlds;
        this.cache = cache;
    }

    void db(RoutingContext ctx) {
        worlds.random().onSuccess(ctx::json).onFailure(ctx::fail);
    }

    void queries(RoutingContext ctx) {
        worlds.random(IntegerParameter.QUERIES.of(ctx)).onSuccess(ctx::json).onFailure(ctx::fail);
    }

    void updates(RoutingContext ctx) {
        worlds.updateRandom(IntegerParameter.QUERIES.of(ctx)).onSuccess(ctx::json).onFailure(ctx::fail);
    }

    void cachedQueries(RoutingContext ctx) {
        cache.random(IntegerParameter.COUNT.of(ctx)).onSuccess(ctx::json).onFailure(ctx::fail);
    }
}
