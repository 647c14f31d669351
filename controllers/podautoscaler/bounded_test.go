package podautoscaler

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

type answering string

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

func TestAnswersAreBounded(t *testing.T) {
	const limit = 10
	for text, fits := range map[string]bool{"": true, "0123456789": true, "0123456789+": false} {
		answer, err := bounded{answering(text), limit}.RoundTrip(nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(answer.Body)
		var tooLarge *http.MaxBytesError
		if fits && (err != nil || string(got) != text) || !fits && !errors.As(err, &tooLarge) {
			t.Errorf("%q: read %q, %v", text, got, err)
		}
	}
}
