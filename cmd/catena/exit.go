package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"

	"github.com/catena-http/catena"
	"github.com/catena-http/catena/connection"
	"github.com/catena-http/catena/event"
	"github.com/catena-http/catena/internal/wire"
)

// Exit codes: curl's, where curl has one.
const (
	exitOther        = 1
	exitUsage        = 2
	exitURL          = 3
	exitUnsupported  = 4
	exitProxyDNS     = 5
	exitDNS          = 6
	exitConnect      = 7
	exitWeirdServer  = 8
	exitPartial      = 18
	exitStatus       = 22
	exitWriteError   = 23
	exitReadError    = 26
	exitTimeout      = 28
	exitTLS          = 35
	exitRedirects    = 47
	exitEmptyReply   = 52
	exitSend         = 55
	exitReceive      = 56
	exitCertificate  = 60
	exitCAFile       = 77
	exitStreamReset  = 92
	exitProxyRefused = 97
	exitInterrupted  = 130
	exitCodesForHelp = `0 done; 1 other; 2 usage; 3 malformed URL; 4 not supported; 5 proxy not resolved; 6 host not resolved;
7 not connected; 8 the server broke HTTP; 18 body cut short; 22 status 400 and above with -f; 23 output not written;
26 input not read; 28 timeout; 35 TLS failed; 47 too many redirects; 52 no answer; 55 not sent; 56 not received;
60 certificate not trusted; 77 --cacert not read; 92 stream reset; 97 proxy refused; 130 interrupted`
)

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
	case errors.Is(err, connection.ErrUnsupportedRoute):
		return exitUnsupported
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
		if !last.Proxy.IsDirect() {
			return exitProxyDNS
		}
		return exitDNS
	case event.StepConnect:
		return exitConnect
	case event.StepProxy:
		return exitProxyRefused
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
