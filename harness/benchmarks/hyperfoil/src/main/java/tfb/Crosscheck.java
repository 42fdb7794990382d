package tfb;

import io.hyperfoil.api.config.BenchmarkBuilder;
import io.hyperfoil.core.impl.LocalSimulationRunner;
import io.hyperfoil.http.api.HttpMethod;
import io.hyperfoil.http.config.HttpPluginBuilder;
import io.hyperfoil.http.steps.HttpStepCatalog;
import java.util.Locale;
import org.HdrHistogram.Histogram;

/**
 * A load at a constant rate by embedded Hyperfoil: {@code PORT RATE SECONDS CONNECTIONS WARM_UP_PORT}; prints one JSON
 * object. Before it the same load goes to another server, so that Hyperfoil's own code is warm.
 */
public final class Crosscheck {
  private static final double NANOSECONDS_IN_MS = 1e6;
  private static final int WARM_UP_SECONDS = 6;

  public static void main(String[] arguments) {
    int rate = Integer.parseInt(arguments[1]);
    int connections = Integer.parseInt(arguments[3]);
    load(Integer.parseInt(arguments[4]), rate, WARM_UP_SECONDS, connections);
    System.out.println(load(Integer.parseInt(arguments[0]), rate, Integer.parseInt(arguments[2]), connections));
    System.exit(0);
  }

  private static String load(int port, int rate, int seconds, int connections) {
    BenchmarkBuilder builder = BenchmarkBuilder.builder().name("crosscheck").threads(1);
    builder
        .addPlugin(HttpPluginBuilder::new)
        .http("http://127.0.0.1:" + port)
        .sharedConnections(connections)
        .endHttp()
        .endPlugin();
    builder
        .addPhase("load")
        .constantRate(rate)
        .variance(false)
        .maxSessions(4 * rate) // a standstill of a second, and more
        .duration(1000L * seconds)
        .scenario()
        .initialSequence("request")
        .step(HttpStepCatalog.SC)
        .httpRequest(HttpMethod.GET)
        .path("/")
        .endStep()
        .endSequence();

    Histogram all = new Histogram(3);
    long[] counted = new long[3];
    new LocalSimulationRunner(
            builder.build(),
            (phase, step, metric, snapshot, countDown) -> {
              synchronized (all) {
                all.add(snapshot.histogram);
                counted[0] += snapshot.requestCount;
                counted[1] += snapshot.responseCount;
                counted[2] += snapshot.invalid + snapshot.connectionErrors + snapshot.requestTimeouts;
              }
            },
            null,
            null)
        .run();
    return String.format(
        Locale.ROOT,
        "{\"requests\": %d, \"responses\": %d, \"errors\": %d, \"mean\": %.4f, \"p50\": %.4f, \"p90\": %.4f, \"p99\": %.4f}",
        counted[0],
        counted[1],
        counted[2],
        all.getMean() / NANOSECONDS_IN_MS,
        all.getValueAtPercentile(50) / NANOSECONDS_IN_MS,
        all.getValueAtPercentile(90) / NANOSECONDS_IN_MS,
        all.getValueAtPercentile(99) / NANOSECONDS_IN_MS);
  }
}
