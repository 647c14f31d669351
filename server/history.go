package server

import (
	"context"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	names "github.com/setpoint-io/setpoint/internal/parts"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/server/past"
)

// openHistory begins to keep what objects were. A history that cannot be opened is none: the store does without.
func (s *Server) openHistory(ctx context.Context) {
	if s.config.Memory != nil {
		return
	}
	var err error
	s.history, err = s.config.History.Open(s.config.DataDir, history.Config{
		Source: s.log, Purges: storage.PurgesFolder(),
		Crowded: func() bool { return past.Crowded(s.log.Space()) }, Logger: s.parts.Logger(names.Store),
	})
	if err != nil {
		s.config.Logger.Warn("history is not kept", "err", err)
		return
	}
	if s.history != nil {
		s.wg.Go(func() { s.history.Run(ctx) })
	}
}
