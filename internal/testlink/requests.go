package testlink

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
)

const (
	// Protocol is the version of the requests that this package speaks.
	Protocol = 1
	origin   = "http://testserver"
	// answerMax is the largest answer, in bytes.
	answerMax = 1 << 20
)

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

// Ask asks the server; body may be nil. An error is the server's sentence, or says that it has ended.
func (s *Session) Ask(ctx context.Context, method, path string, body any) (answer Answer, err error) {
	text, err := s.Text(ctx, method, path, body)
	if err != nil {
		return answer, err
	}
	return answer, json.Unmarshal(text, &answer)
}

// Text is Ask for an answer that is a text.
func (s *Session) Text(ctx context.Context, method, path string, body any) ([]byte, error) {
	text, err := s.ask(ctx, method, path, body)
	if err != nil && ctx.Err() == nil {
		return nil, s.Explain(err)
	}
	return text, err
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
	return nil, refused(response.Status, text)
}

// refusal is what the server says: it is there.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

// refused is the sentence of an answer that is an error.
func refused(status string, text []byte) error {
	var answer Answer
	if err := json.Unmarshal(text, &answer); err != nil || answer.Error == "" {
		return refusal("the test server answers " + status)
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
