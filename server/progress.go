package server

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/inprocess"
)

// progressPath is asked of the API: whatever it answers, its chain of handlers and the caches behind it go on.
const progressPath = "/api/v1/namespaces/kube-system?resourceVersion=0"

// Progress fails if the API of this server has come to a stand. A cluster without a leader, and an answer that is an error, are
// progress: no new start of this server would mend them. Raft is not asked: its loop stands still, rightly, while a long snapshot
// arrives or is restored.
func (s *Server) Progress(ctx context.Context) error {
	config := s.RESTConfig(inprocess.Server)
	transport, err := rest.TransportFor(config)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+progressPath, http.NoBody)
	if err != nil {
		return err
	}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("the API does not answer: %w", err)
	}
	return answer.Body.Close()
}
