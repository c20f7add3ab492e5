package route

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"slices"
)

// sessionCacheSize is how many servers' TLS sessions a Network keeps for
// resumption where the application gave no cache of its own.
const sessionCacheSize = 128

// completeTLS is the configuration shared by all origins of n.
func (n *Network) completeTLS() *tls.Config {
	c := n.TLSConfig.Clone()
	if c == nil {
		c = &tls.Config{}
	}
	if len(c.NextProtos) == 0 && !n.PriorKnowledge() {
		c.NextProtos = slices.Clone(n.Protocols)
	}
	if c.ClientSessionCache == nil {
		c.ClientSessionCache = tls.NewLRUClientSessionCache(sessionCacheSize)
	}
	return c
}

// TLSConfigFor is the configuration of a handshake with a. Valid after Validate.
// The checks of the peer that it makes are complete: the chain, and the name by
// HostnameVerifier where there is one.
func (n *Network) TLSConfigFor(a Address) *tls.Config {
	c := n.tls.Clone()
	if c.ServerName == "" {
		c.ServerName = a.ServerName()
	}
	if n.HostnameVerifier == nil || c.InsecureSkipVerify {
		return c
	}
	// crypto/tls can leave out the name only together with the chain, which is
	// therefore verified here.
	c.InsecureSkipVerify = true
	then := c.VerifyConnection
	c.VerifyConnection = func(state tls.ConnectionState) error {
		if err := verifyChain(c, &state); err != nil {
			return err
		}
		if err := n.HostnameVerifier(a.ServerName(), &state); err != nil {
			return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
		}
		if then != nil {
			return then(state)
		}
		return nil
	}
	return c
}

// CompleteState fills in the verified chains of a connection whose name was
// checked by HostnameVerifier: crypto/tls leaves them out there.
func (n *Network) CompleteState(state *tls.ConnectionState) {
	if n.HostnameVerifier == nil || n.tls.InsecureSkipVerify || len(state.VerifiedChains) > 0 {
		return
	}
	// The same verification passed during the handshake; a failure now (a
	// certificate that expired in between) leaves the chains empty.
	_ = verifyChain(n.tls, state)
}

func verifyChain(c *tls.Config, state *tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the server sent no certificate")
	}
	options := x509.VerifyOptions{Roots: c.RootCAs, Intermediates: x509.NewCertPool()}
	if c.Time != nil {
		options.CurrentTime = c.Time()
	}
	for _, intermediate := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(intermediate)
	}
	chains, err := state.PeerCertificates[0].Verify(options)
	if err != nil {
		return &tls.CertificateVerificationError{UnverifiedCertificates: state.PeerCertificates, Err: err}
	}
	state.VerifiedChains = chains
	return nil
}
