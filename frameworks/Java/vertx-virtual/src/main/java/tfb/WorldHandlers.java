package tfb;

import io.vertx.ext.web.RoutingContext;

/** Handlers for /db, /queries and /updates. */
final class WorldHandlers {

    private final WorldRepository worlds;

    WorldHandlers(WorldRepository worlds) {
        this.worlds = worlds;
    }

    void db(RoutingContext ctx) {
        ctx.json(worlds.random());
    }

    void queries(RoutingContext ctx) {
        ctx.json(worlds.random(count(ctx)));
    }

    void updates(RoutingContext ctx) {
        ctx.json(worlds.updateRandom(count(ctx)));
    }

    /** Returns the {@code queries} parameter, clamped to 1..500, or 1 if it is missing or not an integer. */
    private static int count(RoutingContext ctx) {
        return IntegerParameter.of(ctx, "queries", 1, 500, 1);
    }
}
