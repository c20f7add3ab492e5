import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import okhttp3.ConnectionPool;
import okhttp3.OkHttpClient;
import okhttp3.Protocol;
import okhttp3.Request;
import okhttp3.Response;
import okio.BufferedSource;

/**
 * Sends GETs with OkHttp in closed loops and prints one line: requests, seconds, median and 99th
 * percentile latency and CPU a request, the last three in microseconds. Its arguments: the URL, h1 or
 * h2c, the number of callers, and warm-up and measured time in milliseconds.
 */
public class OkHttp {
  public static void main(String[] args) throws Exception {
    String url = args[0];
    boolean http2 = args[1].equals("h2c");
    int callers = Integer.parseInt(args[2]);
    OkHttpClient client = new OkHttpClient.Builder()
        .protocols(Arrays.asList(http2 ? Protocol.H2_PRIOR_KNOWLEDGE : Protocol.HTTP_1_1))
        .connectionPool(new ConnectionPool(callers, 5, TimeUnit.MINUTES))
        .build();
    run(client, url, callers, Long.parseLong(args[3]));
    long cpu = cpuTime(), began = System.nanoTime();
    long[] latencies = run(client, url, callers, Long.parseLong(args[4]));
    double seconds = (System.nanoTime() - began) / 1e9;
    cpu = cpuTime() - cpu;
    Arrays.sort(latencies);
    System.out.printf("%d %f %f %f %f%n", latencies.length, seconds,
        latencies[latencies.length / 2] / 1e3, latencies[latencies.length * 99 / 100] / 1e3,
        cpu / 1e3 / latencies.length);
    System.exit(0); // OkHttp's own threads would keep the process for a minute
  }

  static long cpuTime() {
    return ((com.sun.management.OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean())
        .getProcessCpuTime();
  }

  /** Returns the latencies, in nanoseconds, of all requests that ended within the time. */
  static long[] run(OkHttpClient client, String url, int callers, long millis) throws Exception {
    AtomicReference<Exception> failure = new AtomicReference<>();
    List<Caller> all = new ArrayList<>();
    for (int i = 0; i < callers; i++) {
      all.add(new Caller(client, url, System.nanoTime() + millis * 1_000_000, failure));
    }
    for (Caller c : all) {
      c.start();
    }
    int n = 0;
    for (Caller c : all) {
      c.join();
      n += c.count;
    }
    if (failure.get() != null) {
      throw failure.get();
    }
    long[] latencies = new long[n];
    for (Caller c : all) {
      n -= c.count;
      System.arraycopy(c.latencies, 0, latencies, n, c.count);
    }
    return latencies;
  }

  static class Caller extends Thread {
    final OkHttpClient client;
    final Request request;
    final long until;
    final AtomicReference<Exception> failure;
    final byte[] buffer = new byte[64 << 10];
    long[] latencies = new long[1 << 12];
    int count;

    Caller(OkHttpClient client, String url, long until, AtomicReference<Exception> failure) {
      this.client = client;
      this.request = new Request.Builder().url(url).build();
      this.until = until;
      this.failure = failure;
    }

    @Override public void run() {
      try {
        do {
          long began = System.nanoTime();
          get();
          if (count == latencies.length) {
            latencies = Arrays.copyOf(latencies, 2 * count);
          }
          latencies[count++] = System.nanoTime() - began;
        } while (System.nanoTime() < until);
      } catch (Exception e) {
        failure.set(e);
      }
    }

    void get() throws Exception {
      try (Response response = client.newCall(request).execute()) {
        if (response.code() != 200) {
          throw new Exception("status " + response.code());
        }
        BufferedSource body = response.body().source();
        while (body.read(buffer) >= 0) {
        }
      }
    }
  }
}
