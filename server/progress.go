package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/inprocess"
)

// progressPath is asked of the API: whatever it answers, its chain of handlers and the caches behind it go on.
const progressPath = "/api/v1/namespaces/kube-system?resourceVersion=0"

// Progress fails if a main part of this server has come to a stand: the loop of raft, or the API. A cluster without a leader, and an answer
// that is an error, are progress: no new start of this server would mend them.
func (s *Server) Progress(ctx context.Context) error {
	if err := s.raftGoesOn(ctx); err != nil {
		return fmt.Errorf("raft does not go on: %w", err)
	}
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

// raftGoesOn takes half of the time that there is: while raft waits for a snapshot, all of its time passes.
func (s *Server) raftGoesOn(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/2)
		defer cancel()
	}
	return s.log.Progress(ctx)
}
