package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/wire"
	"github.com/catena-http/catena/proxy"
	"github.com/catena-http/catena/route"
)

// Exit codes: curl's, where curl has one.
const (
	exitOther       = 1
	exitUsage       = 2
	exitURL         = 3
	exitExcluded    = 4
	exitProxyDNS    = 5
	exitDNS         = 6
	exitConnect     = 7
	exitWeirdServer = 8
	exitPartial     = 18
	exitStatus      = 22
	exitWriteError  = 23
	exitReadError   = 26
	exitTimeout     = 28
	exitTLS         = 35
	exitRedirects   = 47
	exitEmptyReply  = 52
	exitSend        = 55
	exitReceive     = 56
	exitCertificate = 60
	exitCAFile      = 77
	exitStreamReset = 92
	exitSOCKS       = 97
	exitInterrupted = 130
)

// exitCodes says what they mean, for the help.
var exitCodes = []struct {
	code  int
	means string
}{
	{0, "done, whatever the status of the response unless -f is given"},
	{exitOther, "another failure: an unknown scheme, an invalid request"},
	{exitUsage, "the command line makes no sense"},
	{exitURL, "malformed URL"},
	{exitExcluded, "the options exclude the URL: HTTP/2 by prior knowledge, and https"},
	{exitProxyDNS, "the proxy's name was not resolved, or the environment's proxy can't be used"},
	{exitDNS, "the host's name was not resolved"},
	{exitConnect, "no connection to any address"},
	{exitWeirdServer, "the server broke HTTP"},
	{exitPartial, "the body was cut short"},
	{exitStatus, "status 400 or above, with -f"},
	{exitWriteError, "the output was not written"},
	{exitReadError, "a file to send, or the .netrc file, was not read"},
	{exitTimeout, "timeout"},
	{exitTLS, "the TLS handshake failed"},
	{exitRedirects, "too many redirects"},
	{exitEmptyReply, "the server closed the connection without an answer"},
	{exitSend, "the request was not sent"},
	{exitReceive, "the response was not received, or a proxy did not open a tunnel"},
	{exitCertificate, "the server's certificate is not trusted"},
	{exitCAFile, "the --cacert or --proxy-cacert file was not read"},
	{exitStreamReset, "the server reset the HTTP/2 stream"},
	{exitSOCKS, "a SOCKS proxy refused, or can't be told the host"},
	{exitInterrupted, "interrupted, by Ctrl-C for example"},
}

// failure is an error of the command's own, with its exit code.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(code int, err error) error { return &failure{code, err} }

// exitCode is what the command exits with for err, the failure of a call before
// or after its response's head.
func exitCode(err error) int {
	var (
		own         *failure
		timeout     *event.TimeoutError
		certificate *tls.CertificateVerificationError
		reset       *wire.StreamResetError
		protocol    *wire.ProtocolError
		body        *wire.RequestBodyError
	)
	switch {
	case err == nil:
		return 0
	case errors.As(err, &own):
		return own.code
	case errors.As(err, &timeout), errors.Is(err, context.DeadlineExceeded):
		return exitTimeout
	case errors.As(err, &certificate):
		return exitCertificate
	case errors.Is(err, connection.ErrPriorKnowledge):
		return exitExcluded
	case errors.As(err, &body):
		return exitReadError
	case errors.As(err, &reset):
		return exitStreamReset
	case errors.As(err, &protocol):
		return exitWeirdServer
	}
	return exitCodeOfStep(err)
}

// exitCodeOfStep goes by where the last attempt failed.
func exitCodeOfStep(err error) int {
	var call *catena.CallError
	if !errors.As(err, &call) || len(call.Attempts) == 0 {
		return exitOther
	}
	last := call.Attempts[len(call.Attempts)-1]
	switch last.Step {
	case event.StepProxySelect:
		return exitProxyDNS
	case event.StepDNS:
		return exitCodeOfLookup(err)
	case event.StepConnect:
		return exitConnect
	case event.StepProxy:
		return exitCodeOfProxy(err)
	case event.StepTLS:
		return exitTLS
	case event.StepWrite:
		return exitSend
	case event.StepRead:
		if errors.Is(err, io.EOF) {
			return exitEmptyReply
		}
		return exitReceive
	}
	return exitOther
}

// exitCodeOfLookup tells whose name was not found. What is not about a name at all is
// an address that the SOCKS proxy can't be told.
func exitCodeOfLookup(err error) int {
	var (
		way  *route.Error
		name *net.DNSError
	)
	switch {
	case errors.As(err, &way) && way.OfProxy:
		return exitProxyDNS
	case way != nil && !way.Proxy.IsDirect() && !errors.As(err, &name):
		return exitSOCKS
	}
	return exitDNS
}

// exitCodeOfProxy is curl's distinction: an HTTP proxy's answer was not what it was
// read for.
func exitCodeOfProxy(err error) int {
	var socks *proxy.SOCKSError
	if errors.As(err, &socks) {
		return exitSOCKS
	}
	return exitReceive
}
