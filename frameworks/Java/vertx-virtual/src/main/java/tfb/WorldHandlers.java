package tfb;

import io.vertx.ext.web.RoutingContext;

/** Single query, multiple queries, updates. */
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

    /** The parameter {@code queries}, clamped to 1..500; absent, empty or not an integer means 1. */
    private static int count(RoutingContext ctx) {
        return Parameter.of(ctx, "queries", 1, 500, 1);
    }
}
