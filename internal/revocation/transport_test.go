package revocation_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// answering answers as a server with the certificate.
type answering struct{ certificate *x509.Certificate }

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	shown := &tls.ConnectionState{PeerCertificates: []*x509.Certificate{a.certificate}}
	return &http.Response{Body: io.NopCloser(strings.NewReader("")), TLS: shown}, nil
}

// TestAnswersOfARevokedServer are none.
func TestAnswersOfARevokedServer(t *testing.T) {
	ca, err := trust.NewCA(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	id, err := ca.IssueServer(trust.Server{Name: "s", Endpoint: "127.0.0.1:1"}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := trust.ParseCertificate(id.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	judge := &revocation.Judge{}
	transport := judge.Answers(answering{certificate})
	answer, err := transport.RoundTrip(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := answer.Body.Close(); err != nil {
		t.Fatal(err)
	}
	entry := revocation.Entry{Target: revocation.Target{Kind: revocation.Server, Name: "s"}, At: time.Now()}
	judge.UseData(map[string]string{entry.DataKey(): entry.Text()}, slog.New(slog.DiscardHandler))
	var refused *revocation.Error
	if answer, err := transport.RoundTrip(nil); !errors.As(err, &refused) {
		t.Errorf("%v", err)
		_ = answer.Body.Close()
	}
}
