package outside

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/catena-http/catena/bench/internal/client"
	"github.com/catena-http/catena/bench/internal/measure"
	"github.com/catena-http/catena/bench/internal/servers"
	"github.com/catena-http/catena/bench/internal/workload"
)

//go:embed OkHttp.java
var okHTTPSource []byte

// okHTTPJars are where Debian's libokhttp-java and libokio-java put them.
var okHTTPJars = []string{"/usr/share/java/okhttp.jar", "/usr/share/java/okio.jar"}

// jitTime is the least warm-up of OkHttp: until then the JVM compiles.
const jitTime = 4 * time.Second

// okHTTP measures GETs by a page of Java, which is compiled once.
func okHTTP(ctx context.Context, spec workload.Spec) (measure.Sample, error) {
	classes, err := okHTTPClasses(ctx, spec.Files)
	if err != nil {
		return measure.Sample{}, err
	}
	proto, path := "h1", servers.SmallPath
	if spec.Proto == client.H2C {
		proto = "h2c"
	}
	var size int64
	if spec.Work == workload.Download {
		path, size = servers.BodyPath, spec.Files.Size
	}
	out, _, err := output(ctx, "java", "-cp", classPath(slices.Concat(okHTTPJars, []string{classes})...), "OkHttp", url(spec, path), proto, itoa(spec.Callers),
		itoa(int(max(spec.Warmup, jitTime).Milliseconds())), itoa(int(spec.Duration.Milliseconds())))
	if err != nil {
		return measure.Sample{}, err
	}
	s, err := parseOkHTTP(out)
	s.Body = size
	return s, err
}

func parseOkHTTP(out string) (s measure.Sample, err error) {
	if _, err := fmt.Sscan(out, &s.Requests, &s.Seconds, &s.P50, &s.P99, &s.CPU); err != nil {
		return measure.Sample{}, fmt.Errorf("cannot use the Java program's output %q: %w", out, err)
	}
	return s, nil
}

// okHTTPClasses is the folder of the compiled page, which goes with the run's files.
func okHTTPClasses(ctx context.Context, files servers.Files) (string, error) {
	dir := filepath.Join(files.Dir, "okhttp")
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	source := filepath.Join(files.Dir, "OkHttp.java")
	if err := os.WriteFile(source, okHTTPSource, 0o600); err != nil {
		return "", err
	}
	_, _, err := output(ctx, "javac", "-cp", classPath(okHTTPJars...), "-d", dir, source)
	return dir, err
}

func classPath(entries ...string) string { return strings.Join(entries, string(os.PathListSeparator)) }

// okHTTPInstalled tells whether a JDK and OkHttp are there.
func okHTTPInstalled() bool {
	for _, jar := range okHTTPJars {
		if _, err := os.Stat(jar); err != nil {
			return false
		}
	}
	return onPath("java", "javac")
}
