package podautoscaler

import "net/http"

// answerBytesMax bounds the answer of a metrics server: 100,000 pods with some containers each fit in it.
const answerBytesMax = 64 << 20

// bounded makes reading more than answerBytesMax of an answer a failure, so that a metrics server that goes astray
// does not fill the memory of the leader.
type bounded struct {
	http.RoundTripper
	max int64
}

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.RoundTripper.RoundTrip(r)
	if err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, b.max)
	}
	return answer, err
}
