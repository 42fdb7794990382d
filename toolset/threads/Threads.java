import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;

/**
 * What threads cost: prints one JSON object of figures, SI units, on standard output.
 *
 * <p>Every thread says that it is there and waits for the last one. Each kind and number runs in a JVM of its own: the first
 * thousand pays for classes, stacks and arenas that a second one would find there.
 */
public final class Threads {

  /** What the child of a kind and number prints: how many there were, seconds until all were, bytes that they added. */
  record Cost(int started, double seconds, long bytes) {}

  private Threads() {}

  public static void main(String[] arguments) throws Exception {
    if (arguments.length == 2) {
      Cost cost = start(arguments[0].equals("virtual"), Integer.parseInt(arguments[1]));
      System.out.printf(Locale.ROOT, "%d %.9f %d%n", cost.started(), cost.seconds(), cost.bytes());
      System.out.flush();
      Runtime.getRuntime().halt(0); // ten thousand ends would be waited for one by one
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

  /** Starts so many threads; stops at the first that the machine refuses. */
  private static Cost start(boolean virtual, int number) throws InterruptedException, IOException {
    CountDownLatch end = new CountDownLatch(1);
    CountDownLatch there = new CountDownLatch(number);
    Runnable body =
        () -> {
          there.countDown();
          try {
            end.await();
          } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
          }
        };
    Thread.Builder builder = virtual ? Thread.ofVirtual() : Thread.ofPlatform().daemon();
    List<Thread> threads = new ArrayList<>(number); // who holds no virtual thread may lose it
    long before = residentBytes();
    long began = System.nanoTime();
    try {
      for (int i = 0; i < number; i++) {
        threads.add(builder.start(body));
      }
      there.await();
    } catch (OutOfMemoryError refused) {
      // The number that there is says it.
    }
    double seconds = (System.nanoTime() - began) / 1e9;
    return new Cost(threads.size(), seconds, residentBytes() - before);
  }

  /** The process's resident set, by the kernel. */
  private static long residentBytes() throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
      if (line.startsWith("VmRSS:")) {
        return Long.parseLong(line.replaceAll("\\D", "")) * 1024;
      }
    }
    throw new IOException("/proc/self/status has no VmRSS");
  }

  /** A fresh JVM of the same kind as this one. A child that dies of its threads has started none that count. */
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
