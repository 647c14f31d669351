package testlink

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

const (
	// Protocol is the version of the requests that this package speaks.
	Protocol = 1
	origin   = "http://testserver"
	// answerMax is the largest answer, in bytes.
	answerMax = 1 << 20
	// QuickLimit is how long the server may take for what it has at hand.
	QuickLimit = 30 * time.Second
	// ClusterLimit is how long it may take to start, fork or reset a cluster: few start at once, the others wait for their turn.
	ClusterLimit = 5 * time.Minute
	// advanceShare: an hour of a cluster may take a minute.
	advanceShare = 60
)

// AdvanceLimit is how long the server may take to let time pass for a cluster.
func AdvanceLimit(d time.Duration) time.Duration { return ClusterLimit + d/advanceShare }

// Clusters is what a cluster is made from.
type Clusters struct {
	Nodes             int      `json:"nodes,omitempty"`
	Replicas          int      `json:"replicas,omitempty"`
	APIOnly           bool     `json:"apiOnly,omitempty"`
	Loops             []string `json:"loops,omitempty"`
	DisabledAdmission []string `json:"disabledAdmission,omitempty"`
	Session           string   `json:"session,omitempty"`
}

// Answer is what the server says.
type Answer struct {
	Protocol int      `json:"protocol"`
	Version  string   `json:"version"`
	Cluster  string   `json:"cluster"`
	Mark     string   `json:"mark"`
	Session  string   `json:"session"`
	Why      []string `json:"why"`
	Error    string   `json:"error"`
}

// Ask asks the server, which answers within the limit; body may be nil. An error is the server's sentence, or says that it has ended, or
// does not answer.
func (s *Session) Ask(ctx context.Context, limit time.Duration, method, path string, body any) (answer Answer, err error) {
	text, err := s.Text(ctx, limit, method, path, body)
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(text, &answer)
}

// Text is Ask for an answer that is a text.
func (s *Session) Text(ctx context.Context, limit time.Duration, method, path string, body any) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	text, err := s.ask(limited, method, path, body)
	switch {
	case err == nil || ctx.Err() != nil:
		return text, err
	case limited.Err() != nil:
		return nil, fmt.Errorf("the test server has not answered %s %s within %v, because it is stopped or the machine is too busy: %s, and run the test again",
			method, path, limit, s.howToEnd())
	}
	return nil, s.Explain(ctx, err)
}

func (s *Session) ask(ctx context.Context, method, path string, body any) ([]byte, error) {
	var sent io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, origin+path, sent)
	if err != nil {
		return nil, err
	}
	response, err := s.client().Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, answerMax))
	if err != nil || response.StatusCode == http.StatusOK {
		return text, err
	}
	return nil, refused(response, text)
}

// refusal is what the server says: it is there.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

// refused is the sentence of an answer that is an error.
func refused(response *http.Response, text []byte) error {
	var answer Answer
	if err := json.Unmarshal(text, &answer); err != nil || answer.Error == "" {
		return refusal("the test server answers " + response.Status)
	}
	if response.StatusCode == http.StatusTooManyRequests {
		return refusal(answer.Error + ": let fewer tests have a cluster at once, with -p and -parallel of go test")
	}
	return refusal(answer.Error)
}

// client leaves no connection behind.
func (s *Session) client() *http.Client {
	dialer := &net.Dialer{}
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return dialer.DialContext(ctx, "unix", s.socket)
	}
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: dial}}
}
