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
        ctx.json(worlds.random());
    }

    void queries(RoutingContext ctx) {
        ctx.json(worlds.random(IntegerParameter.QUERIES.of(ctx)));
    }

    void updates(RoutingContext ctx) {
        ctx.json(worlds.updateRandom(IntegerParameter.QUERIES.of(ctx)));
    }

    void cachedQueries(RoutingContext ctx) {
        ctx.json(cache.random(IntegerParameter.COUNT.of(ctx)));
    }
}
