package tfb;

import io.hyperfoil.api.config.BenchmarkBuilder;
import io.hyperfoil.core.impl.LocalSimulationRunner;
import io.hyperfoil.http.api.HttpMethod;
import io.hyperfoil.http.config.HttpPluginBuilder;
import io.hyperfoil.http.steps.HttpStepCatalog;
import org.HdrHistogram.Histogram;

/** A load at a constant rate by embedded Hyperfoil: {@code PORT RATE SECONDS CONNECTIONS}; prints one JSON object. */
public final class Crosscheck {
  private static final double NANOSECONDS_IN_MS = 1e6;

  public static void main(String[] arguments) {
    int port = Integer.parseInt(arguments[0]);
    int rate = Integer.parseInt(arguments[1]);
    long milliseconds = 1000L * Integer.parseInt(arguments[2]);
    int connections = Integer.parseInt(arguments[3]);

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
        .duration(milliseconds)
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
    System.out.printf(
        "{\"requests\": %d, \"responses\": %d, \"errors\": %d, \"mean\": %.4f, \"p50\": %.4f, \"p90\": %.4f, \"p99\": %.4f}%n",
        counted[0],
        counted[1],
        counted[2],
        all.getMean() / NANOSECONDS_IN_MS,
        all.getValueAtPercentile(50) / NANOSECONDS_IN_MS,
        all.getValueAtPercentile(90) / NANOSECONDS_IN_MS,
        all.getValueAtPercentile(99) / NANOSECONDS_IN_MS);
    System.exit(0);
  }
}
