// Package servers starts what the clients are measured against: an nginx with one
// worker and a Go server, both on loopback.
package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Files are what servers and clients share on disk.
type Files struct {
	Dir  string // where the rest lies
	Cert string // PEM, of 127.0.0.1, its own authority
	Key  string
	Body string // what is downloaded and uploaded: "body", of Size bytes
	Size int64
}

// NewFiles fills dir. The body is all one byte: nobody compresses it here.
func NewFiles(dir string, size int64) (Files, error) {
	f := Files{
		Dir:  dir,
		Cert: filepath.Join(dir, "cert.pem"),
		Key:  filepath.Join(dir, "key.pem"),
		Body: filepath.Join(dir, "body"),
		Size: size,
	}
	return f, errors.Join(writeCert(f.Cert, f.Key), writeBody(f.Body, size))
}

func writeCert(certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "127.0.0.1"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(7 * 24 * time.Hour),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o644),
		os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600),
	)
}

func writeBody(name string, size int64) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = 'x'
	}
	for left := size; left > 0 && err == nil; left -= int64(len(block)) {
		_, err = f.Write(block[:min(left, int64(len(block)))])
	}
	return errors.Join(err, f.Close())
}

// ClientTLS is the configuration that trusts certFile. With resume, sessions are
// resumed; else every handshake is a full one.
func ClientTLS(certFile string, resume bool) (*tls.Config, error) {
	cert, err := os.ReadFile(certFile)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(cert) {
		return nil, errors.New(certFile + " holds no certificate")
	}
	cfg := &tls.Config{RootCAs: roots, SessionTicketsDisabled: !resume}
	if resume {
		cfg.ClientSessionCache = tls.NewLRUClientSessionCache(64)
	}
	return cfg, nil
}
