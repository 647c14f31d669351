package join

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// answerMaxBytes bounds what is read of an answer.
const answerMaxBytes = 64 << 10

// question is what a node asks of a server, and what it needs to believe the answer.
type question struct {
	request
	keyPEM []byte
	// pins name the authorities of which the server must have one.
	pins []string
	// shown is the certificate that the connection shows, if any.
	shown []tls.Certificate
	// through, if not nil, wraps the transport.
	through func(http.RoundTripper) http.RoundTripper
	// now is the time by which certificates are judged; nil: the process's.
	now func() time.Time
}

func newQuestion(node string, keyPEM []byte, pins ...string) (*question, error) {
	if err := trust.ValidateNodeName(node); err != nil {
		return nil, err
	}
	requestPEM, err := trust.NewNodeRequest(node, keyPEM)
	if err != nil {
		return nil, err
	}
	return &question{request: request{CSRPEM: string(requestPEM), NodeName: node}, keyPEM: keyPEM, pins: pins}, nil
}

func (q *question) at(ctx context.Context, server string) (*trust.Node, error) {
	answer, err := q.post(ctx, server)
	if err != nil {
		return nil, explainClocks(ctx, server, q.pins, err)
	}
	now := time.Now
	if q.now != nil {
		now = q.now
	}
	return accept(answer, q.keyPEM, q.pins, now())
}

func (q *question) post(ctx context.Context, server string) (answer response, err error) {
	client, done := pinnedClient(server, q.pins, q.now, q.shown)
	defer done()
	if q.through != nil {
		client.Transport = q.through(client.Transport)
	}
	err = post(ctx, client, "https://"+server+Path, q.request, &answer, answerMaxBytes)
	return answer, err
}

// post sends a value in JSON and reads the answer, of which at most limit bytes.
func post(ctx context.Context, client *http.Client, url string, value, answer any, limit int64) error {
	body, err := json.Marshal(value)
	if err != nil {
		return err
	}
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	call.Header.Set("Content-Type", "application/json")
	reply, err := client.Do(call)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, limit))
	if err != nil {
		return err
	}
	if reply.StatusCode != http.StatusOK {
		return refusal(reply.StatusCode, text)
	}
	return json.Unmarshal(text, answer)
}

// refusal turns an answer that is not 200 into an error; the server's own trouble may pass.
func refusal(code int, text []byte) error {
	var status metav1.Status
	if json.Unmarshal(text, &status) != nil || status.Message == "" {
		status.Message = http.StatusText(code)
	}
	ofToken := status.Message == ErrTokenRefused.Error() || status.Message == http.StatusText(code)
	switch {
	case code == http.StatusUnauthorized && status.Message == ErrServerTokenRefused.Error():
		return ErrServerTokenRefused
	case code == http.StatusUnauthorized && ofToken: // others say who the machine was, and what it is not any more
		return ErrTokenRefused
	case code >= 400 && code < 500 && code != http.StatusNotFound && code != http.StatusTooManyRequests:
		return fmt.Errorf("%w: %s", ErrRefused, status.Message)
	}
	return fmt.Errorf("%d: %s", code, status.Message)
}

// accept checks what the server sent: a pinned authority must be among those that are believed, and the certificate valid now.
func accept(answer response, keyPEM []byte, pins []string, now time.Time) (*trust.Node, error) {
	authorities, err := trust.ParseCertificates([]byte(answer.CAPEM))
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(authorities, func(a *x509.Certificate) bool { return slices.Contains(pins, trust.Pin(a)) }) {
		return nil, ErrWrongCluster
	}
	certificate, err := trust.ParseCertificate([]byte(answer.CertPEM))
	if err != nil {
		return nil, err
	}
	if now.Before(certificate.NotBefore) {
		return nil, fmt.Errorf(
			"%w: it begins %s from now: set the time",
			ErrClocksDiffer,
			certificate.NotBefore.Sub(now).Round(time.Second),
		)
	}
	if answer.GossipKeys == nil { // the server is of a release that never replaces the key
		key, err := trust.ParseGossipKey(answer.GossipKey)
		if err != nil {
			return nil, err
		}
		answer.GossipKeys = new(trust.FirstGossipKey(key))
	}
	return trust.NewNode([]byte(answer.CertPEM), []byte(answer.ServingPEM), keyPEM, []byte(answer.CAPEM), *answer.GossipKeys)
}

// anyTime lets a client not mind certificates being outdated: fit for asking the time, for nothing more.
var anyTime = func() time.Time { return time.Time{} }

// pinnedClient trusts the authorities with the pins and nothing else. now is the time by which certificates are judged; nil: the process's.
func pinnedClient(server string, pins []string, now func() time.Time, shown []tls.Certificate) (client *http.Client, done func()) {
	if now == nil {
		now = time.Now
	}
	host, _, err := net.SplitHostPort(server)
	if err != nil {
		host = server
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{
		MinVersion:   tls.VersionTLS12,
		ServerName:   host,
		Certificates: shown,
		// The authority is not known yet; VerifyConnection checks it by its hash, and all the rest.
		InsecureSkipVerify: true,
		VerifyConnection:   func(state tls.ConnectionState) error { return verifyPinned(state, host, pins, now()) },
	}}
	refuse := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, CheckRedirect: refuse}, transport.CloseIdleConnections
}

// verifyPinned takes what the server shows as a way to a pinned authority too: while the authority is replaced, each has signed the other.
func verifyPinned(state tls.ConnectionState, host string, pins []string, now time.Time) error {
	roots, between := x509.NewCertPool(), x509.NewCertPool()
	found := false
	for _, certificate := range state.PeerCertificates {
		between.AddCert(certificate)
		if slices.Contains(pins, trust.Pin(certificate)) {
			roots.AddCert(certificate)
			found = true
		}
	}
	if !found {
		return ErrWrongCluster
	}
	leaf := state.PeerCertificates[0]
	options := x509.VerifyOptions{Roots: roots, Intermediates: between, DNSName: host, CurrentTime: now}
	if now.IsZero() { // of anyTime
		options.CurrentTime = leaf.NotBefore
	}
	chains, err := leaf.Verify(options)
	if err != nil {
		return err
	}
	state.VerifiedChains = chains
	return trust.RequireServer(state)
}

// explainClocks finds out, for a certificate that is not valid now, how far this clock is
// from the server's. It asks for a public page and sends no secret.
func explainClocks(ctx context.Context, server string, pins []string, cause error) error {
	invalid, ok := errors.AsType[x509.CertificateInvalidError](cause)
	if !ok || invalid.Reason != x509.Expired {
		return cause
	}
	what := "has expired"
	if time.Now().Before(invalid.Cert.NotBefore) {
		what = "is not yet valid"
	}
	difference, err := askClock(ctx, server, pins)
	if err != nil {
		return fmt.Errorf("%w: the server's certificate %s: %w", ErrClocksDiffer, what, err)
	}
	if difference.Abs() < time.Minute {
		return fmt.Errorf(
			"%w: the server's certificate %s, although the clocks agree: restart that server, and it makes a new one",
			ErrClocksDiffer,
			what,
		)
	}
	return fmt.Errorf("%w: the server's certificate %s: the clocks of this machine and the server differ by %s: set the time",
		ErrClocksDiffer, what, difference.Abs().Round(time.Second))
}

// askClock returns the server's time minus this machine's.
func askClock(ctx context.Context, server string, pins []string) (time.Duration, error) {
	call, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+server+"/version", nil)
	if err != nil {
		return 0, err
	}
	client, done := pinnedClient(server, pins, anyTime, nil)
	defer done()
	reply, err := client.Do(call)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	there, err := http.ParseTime(reply.Header.Get("Date"))
	if err != nil {
		return 0, err
	}
	return time.Until(there), nil
}
