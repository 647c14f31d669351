package removed

import (
	"encoding/json"
	"net/http"

	"connectrpc.com/connect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Header marks the answers of a server that was removed, and names it.
const Header = "Setpoint-Removed"

// Handler answers every request that the server of the name was removed: why says so, and what to do.
func Handler(name string, why error) http.Handler {
	// Without the header of its protocol, a request of Connect in JSON could be one of the API.
	ofParts := connect.NewErrorWriter(connect.WithRequireConnectProtocolHeader())
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(Header, name)
		w.Header().Set("Cache-Control", "no-store")
		if ofParts.IsSupported(r) {
			_ = ofParts.Write(w, r, connect.NewError(connect.CodeUnavailable, why)) // a client that went away needs no answer
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: http.StatusServiceUnavailable, Reason: metav1.StatusReasonServiceUnavailable, Message: why.Error(),
		})
	})
}
