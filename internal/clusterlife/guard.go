package clusterlife

import (
	"encoding/json"
	"fmt"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// Header names a life: in a request that which the agent has pinned, in an answer that of the server.
	Header = "Setpoint-Life"
	// unknown stands for a life that an agent has not pinned yet, or a server does not know yet.
	unknown = "unknown"
	// nameBytesMax bounds what is repeated of a name.
	nameBytesMax = 64
)

// Lives returns the name of a server's life, "" while it has none, and what says whether that life comes of another one.
type Lives func() (life string, comesOf func(former string) bool)

// Guard refuses requests of agents that have pinned another life than the server's, before anything is read of them. Requests
// without Header pass at the cost of a look.
func Guard(next http.Handler, lives Lives) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if pinned := r.Header.Get(Header); pinned != "" && !admit(w, pinned, lives) {
			return
		}
		next.ServeHTTP(w, r)
	})
}

// admit says what the server's life is, and refuses a request of another.
func admit(w http.ResponseWriter, pinned string, lives Lives) bool {
	life, comesOf := lives()
	switch {
	case life == "" && pinned == unknown:
		return true
	case life == "":
		refuse(w, unknown, "this server does not know yet which life of the cluster its data are of")
		return false
	case pinned != unknown && pinned != life && !comesOf(pinned):
		refuse(w, life, fmt.Sprintf("this server has the life %s of the cluster, the node belongs to %q: one of them was founded or restored "+
			"apart from the other, and the node's pods would be unknown here", life, pinned[:min(len(pinned), nameBytesMax)]))
		return false
	}
	w.Header().Set(Header, life)
	return true
}

// refuse answers as upstream does, with a Status. 421 says that the request belongs to another server.
func refuse(w http.ResponseWriter, life, message string) {
	w.Header().Set(Header, life)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusMisdirectedRequest)
	_ = json.NewEncoder(w).Encode(metav1.Status{ // a client that went away needs no answer
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: http.StatusMisdirectedRequest, Message: message,
	})
}
