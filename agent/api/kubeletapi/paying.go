package kubeletapi

import (
	"net/http"

	"github.com/setpoint-io/setpoint/internal/paidstream"
	"github.com/setpoint-io/setpoint/internal/shares"
)

// paying lets the parts of a stream wait for the time of its namespace, in both directions, while this node's agent has no processor to
// spare: a pod that writes without a pause would keep one busy for each of its streams. A name that is no pod's is the handler's to refuse.
func (s *server) paying(stream http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		holder := shares.Namespace(r.PathValue("namespace"))
		pay := func(bytes int) { s.processor.Spend(holder, paidstream.Units(bytes)) }
		stream(&paidstream.Answer{ResponseWriter: w, Pay: pay, PayRead: pay}, r)
	}
}
