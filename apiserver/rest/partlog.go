package rest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// endingQuietly lets the logs of servers' parts end without an error when their server dies. kubectl follows the parts of all servers
// with one command, and would give up all of them for one that breaks.
type endingQuietly struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (e endingQuietly) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := e.next.RoundTrip(r)
	if err == nil {
		response.Body = &quietEnd{ReadCloser: response.Body, asked: r}
	}
	return response, err
}

// quietEnd is a body that ends with a sentence instead of an error.
type quietEnd struct {
	io.ReadCloser
	asked *http.Request
	last  *strings.Reader // the sentence; nil before the end
}

func (q *quietEnd) Read(p []byte) (int, error) {
	if q.last != nil {
		return q.last.Read(p)
	}
	n, err := q.ReadCloser.Read(p)
	if err == nil || errors.Is(err, io.EOF) || q.asked.Context().Err() != nil {
		return n, err
	}
	q.last = strings.NewReader(fmt.Sprintf("the log ends here: its server does not answer any more: %v\n", err))
	return n, nil
}
