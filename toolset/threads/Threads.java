import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;

/**
 * Measures the cost of platform and virtual threads, and prints it as a JSON object in SI units.
 *
 * <p>All threads of a measurement exist at the same time. Each measurement runs in a new JVM, so that all include the
 * class loading and arena allocation that a JVM's first thousand threads cause.
 */
public final class Threads {

  /** Number of started threads, seconds until all were running, and growth of the resident set in bytes. */
  record Cost(int started, double seconds, long bytes) {}

  private Threads() {}

  public static void main(String[] arguments) throws Exception {
    if (arguments.length == 2) {
      Cost cost = start(arguments[0].equals("virtual"), Integer.parseInt(arguments[1]));
      System.out.printf(Locale.ROOT, "%d %.9f %d%n", cost.started(), cost.seconds(), cost.bytes());
      System.out.flush();
      Runtime.getRuntime().halt(0); // exits without waiting for the started threads
    }
    Cost platform = inItsOwnJvm("platform", 1_000);
    Cost virtual = inItsOwnJvm("virtual", 1_000);
    Cost many = inItsOwnJvm("platform", 9_000);
    Cost million = inItsOwnJvm("virtual", 1_000_000);
    System.out.printf(
        Locale.ROOT,
        "{\"platform_seconds\": %.9f, \"platform_bytes\": %d, \"virtual_seconds\": %.9f, \"virtual_bytes\": %d, "
            + "\"too_many_platform\": %d, \"started_platform\": %d, \"seconds_of_9000_platform\": %.9f, "
            + "\"too_many_virtual\": %d, \"started_virtual\": %d, \"bytes_of_a_million_virtual\": %d}%n",
        platform.seconds(),
        platform.bytes(),
        virtual.seconds(),
        virtual.bytes(),
        many.started() < 9_000 ? 1 : 0,
        many.started(),
        many.seconds(),
        million.started() < 1_000_000 ? 1 : 0,
        million.started(),
        million.bytes());
  }

  /** Starts {@code number} threads, or as many as the machine allows. */
  private static Cost start(boolean virtual, int number) throws InterruptedException, IOException {
    CountDownLatch end = new CountDownLatch(1);
    CountDownLatch running = new CountDownLatch(number);
    Runnable body =
        () -> {
          running.countDown();
          try {
            end.await();
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
        };
    Thread.Builder builder = virtual ? Thread.ofVirtual() : Thread.ofPlatform().daemon();
    List<Thread> threads = new ArrayList<>(number); // keeps virtual threads from being garbage-collected
    long before = residentBytes();
    long began = System.nanoTime();
    try {
      for (int i = 0; i < number; i++) {
        threads.add(builder.start(body));
      }
      running.await();
    } catch (OutOfMemoryError refused) {
      // The machine allows no more threads, so report how many were started.
    }
    double seconds = (System.nanoTime() - began) / 1e9;
    return new Cost(threads.size(), seconds, residentBytes() - before);
  }

  /** Returns the resident set size of this process. */
  private static long residentBytes() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmRSS:")) {
        return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
      }
    }
    throw new IOException("/proc/self/status has no VmRSS");
  }

  /** Runs a measurement in a new JVM. If the JVM crashes, the result is zero threads. */
  private static Cost inItsOwnJvm(String kind, int number) throws Exception {
    String java = ProcessHandle.current().info().command().orElse("java");
    String source = System.getProperty("jdk.launcher.sourcefile", "toolset/threads/Threads.java");
    Process child =
        new ProcessBuilder(java, "-XX:+UseSerialGC", "-Xmx2g", source, kind, Integer.toString(number))
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    String printed = new String(child.getInputStream().readAllBytes());
    child.waitFor();
    String[] words = printed.strip().split(" ");
    if (words.length != 3) {
      return new Cost(0, 0, 0);
    }
    return new Cost(Integer.parseInt(words[0]), Double.parseDouble(words[1]), Long.parseLong(words[2]));
  }
}
