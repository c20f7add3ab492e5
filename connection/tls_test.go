package connection

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/route"
)

// authority is a certificate authority of the tests' own.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pool *x509.CertPool
}

var testAuthority = sync.OnceValue(newAuthority)

func newAuthority() *authority {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	a := &authority{key: key, pool: x509.NewCertPool()}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		panic(err)
	}
	a.pool.AddCert(a.cert)
	return a
}

// issue is a server's certificate for names.
func (a *authority) issue(names ...string) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), DNSNames: names, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func trusting(n *route.Network) { n.TLSConfig = &tls.Config{RootCAs: testAuthority().pool} }

// tlsHost is a server with a certificate for names that offers protocols.
func (w *world) tlsHost(name, ip string, config *tls.Config, h http.Handler) {
	w.t.Helper()
	w.net.AddHost(name, ip)
	l, err := w.net.Listen(net.JoinHostPort(ip, "443"))
	if err != nil {
		w.t.Fatal(err)
	}
	s := &http.Server{Handler: h, TLSConfig: config, ErrorLog: log.New(io.Discard, "", 0)}
	if len(config.NextProtos) > 0 && config.NextProtos[0] == "h2" {
		go s.ServeTLS(l, "", "")
	} else {
		s.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
		go s.Serve(tls.NewListener(l, config))
	}
	w.t.Cleanup(func() { s.Close() })
}

func TestALPN(t *testing.T) {
	for name, tc := range map[string]struct {
		server, client []string
		want           string
	}{
		"both":                    {[]string{"h2", "http/1.1"}, nil, "h2"},
		"the server has HTTP/1.1": {[]string{"http/1.1"}, nil, "http/1.1"},
		"the server has no ALPN":  {nil, nil, "http/1.1"},
		"the client has HTTP/1.1": {[]string{"h2", "http/1.1"}, []string{"http/1.1"}, "http/1.1"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, PoolOptions{}, func(n *route.Network) {
					trusting(n)
					n.Protocols = tc.client
				})
				w.tlsHost("a.test", "192.0.2.1", &tls.Config{Certificates: []tls.Certificate{testAuthority().issue("a.test")}, NextProtos: tc.server}, hello)
				body, c, err := w.do(t.Context(), "https://a.test/")
				if err != nil || body != "hello from a.test" {
					t.Fatalf("got %q, %v", body, err)
				}
				if got := c.exchange.conn.Protocol(); got != tc.want {
					t.Errorf("speaks %q", got)
				}
				if s := c.exchange.conn.TLS(); s == nil || len(s.VerifiedChains) != 1 {
					t.Errorf("the TLS state is %v", s)
				}
				w.expect(1, 1)
			})
		})
	}
}

// A server that agreed to HTTP/2 and speaks HTTP/1.1 is told apart at once.
func TestHTTP1AfterALPN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, PoolOptions{}, trusting)
		w.net.AddHost("a.test", "192.0.2.1")
		l, err := w.net.Listen("192.0.2.1:443")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
			s := tls.Server(c, &tls.Config{Certificates: []tls.Certificate{testAuthority().issue("a.test")}, NextProtos: []string{"h2"}})
			s.Read(make([]byte, 1024))
			io.WriteString(s, "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
		}()
		start := time.Now()
		_, _, err = w.do(t.Context(), "https://a.test/")
		if err == nil || !strings.Contains(err.Error(), "HTTP/1") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(start); took > 100*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

var errWrongName = errors.New("not the name I know")

func TestHostnameVerifier(t *testing.T) {
	type outcome struct {
		ok       bool
		verifier bool // it was asked
		chains   bool // they are handed out
	}
	accept := func(string, *tls.ConnectionState) error { return nil }
	refuse := func(string, *tls.ConnectionState) error { return errWrongName }
	for name, tc := range map[string]struct {
		verify   func(string, *tls.ConnectionState) error
		insecure bool
		unknown  bool   // nobody trusts the authority
		certFor  string // the name in the certificate
		want     outcome
	}{
		"good":                              {nil, false, false, "a.test", outcome{true, false, true}},
		"another name":                      {nil, false, false, "b.test", outcome{false, false, false}},
		"unknown authority":                 {nil, false, true, "a.test", outcome{false, false, false}},
		"insecure":                          {nil, true, true, "b.test", outcome{true, false, false}},
		"verifier accepts another name":     {accept, false, false, "b.test", outcome{true, true, true}},
		"verifier refuses":                  {refuse, false, false, "a.test", outcome{false, true, false}},
		"verifier does not check the chain": {accept, false, true, "a.test", outcome{false, false, false}},
		"insecure skips the verifier":       {refuse, true, true, "b.test", outcome{true, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var asked []string
				w := newWorld(t, PoolOptions{}, func(n *route.Network) {
					trusting(n)
					if tc.unknown {
						n.TLSConfig.RootCAs = x509.NewCertPool()
					}
					n.TLSConfig.InsecureSkipVerify = tc.insecure
					if tc.verify != nil {
						n.HostnameVerifier = func(host string, s *tls.ConnectionState) error {
							asked = append(asked, host)
							if len(s.VerifiedChains) == 0 {
								t.Error("the verifier was asked before the chain was checked")
							}
							return tc.verify(host, s)
						}
					}
				})
				w.tlsHost("a.test", "192.0.2.1", &tls.Config{Certificates: []tls.Certificate{testAuthority().issue(tc.certFor)}}, hello)
				// A second address that nothing listens at: a certificate that is
				// refused is refused for good.
				w.net.AddHost("a.test", "192.0.2.1", "192.0.2.2")
				_, c, err := w.do(t.Context(), "https://a.test/")
				got := outcome{ok: err == nil, verifier: len(asked) > 0}
				if err == nil {
					got.chains = len(c.exchange.conn.TLS().VerifiedChains) > 0
				}
				if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(outcome{})); diff != "" {
					t.Errorf("%v (-want +got)\n%s", err, diff)
				}
				for _, host := range asked {
					if host != "a.test" {
						t.Errorf("asked about %q", host)
					}
				}
				if err == nil {
					return
				}
				var certificate *tls.CertificateVerificationError
				if !errors.As(err, &certificate) {
					t.Errorf("the error is %T: %v", err, err)
				}
				if tc.verify != nil && got.verifier && !errors.Is(err, errWrongName) {
					t.Errorf("the verifier's error is lost: %v", err)
				}
				if a := c.a.Attempts(); len(a) != 1 || a[0].Step != event.StepTLS || a[0].Why != event.ReasonCertificate {
					t.Errorf("the attempts are %+v", a)
				}
				if w.database.Len() != 0 {
					t.Error("the route is remembered as failed")
				}
			})
		})
	}
}

// A resumed session shows the certificate again, and the verifier is asked again.
func TestSessionIsResumedWithVerifier(t *testing.T) {
	for _, verify := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			asked := 0
			w := newWorld(t, PoolOptions{}, func(n *route.Network) {
				trusting(n)
				if verify {
					n.HostnameVerifier = func(string, *tls.ConnectionState) error { asked++; return nil }
				}
			})
			w.tlsHost("a.test", "192.0.2.1", &tls.Config{Certificates: []tls.Certificate{testAuthority().issue("a.test")}}, hello)
			for i := range 2 {
				_, c, err := w.do(t.Context(), "https://a.test/")
				if err != nil {
					t.Fatal(err)
				}
				s := c.exchange.conn.TLS()
				if s.DidResume != (i > 0) || len(s.VerifiedChains) != 1 {
					t.Errorf("connection %d: resumed %v, %d chains", i, s.DidResume, len(s.VerifiedChains))
				}
				w.pool.EvictAll()
			}
			if want := map[bool]int{false: 0, true: 2}[verify]; asked != want {
				t.Errorf("the verifier was asked %d times", asked)
			}
		})
	}
}

// Names go to TLS in the form that certificates have.
func TestServerName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var names []string
		w := newWorld(t, PoolOptions{}, trusting)
		w.tlsHost("xn--7bi.test", "192.0.2.1", &tls.Config{
			Certificates: []tls.Certificate{testAuthority().issue("xn--7bi.test")},
			GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
				names = append(names, h.ServerName)
				return nil, nil
			},
		}, hello)
		w.net.AddHost("xn--7bi.test.", "192.0.2.1")
		w.get("https://✌.test/")
		w.get("https://✌.test./")
		if diff := cmp.Diff([]string{"xn--7bi.test", "xn--7bi.test"}, names); diff != "" {
			t.Errorf("(-want +got)\n%s", diff)
		}
	})
}
