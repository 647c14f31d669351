package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/setpoint-io/setpoint/raftstore"
)

var (
	errRevokesItself = errors.New("this server would shut itself out: ask another one, with the kubeconfig of that server")
	errRevokesQuorum = errors.New("the servers left that answer could not write: bring one back, or make another a member " +
		"with 'setpoint cluster join', before")
)

// judgeRevokedServer says why a server may not be shut out, beside those that revoked tells: the cluster must go on.
func (a *api) judgeRevokedServer(ctx context.Context, name string, revoked func(name string) bool) error {
	if name == a.config.Name {
		return fmt.Errorf("server/%s: %w", name, errRevokesItself)
	}
	return judgeRevokedServer(name, a.config.log.Members(ctx), revoked)
}

// judgeRevokedServer counts the voters that answer without the server: they must be most of all, since it is a member until it is removed.
func judgeRevokedServer(name string, members []raftstore.Member, revoked func(name string) bool) error {
	voters, votes, answer := 0, false, 0
	for _, m := range members {
		if !m.Voter {
			continue
		}
		voters++
		votes = votes || m.Name == name
		if m.Name != name && m.Reachable && !revoked(m.Name) {
			answer++
		}
	}
	if votes && answer < voters/2+1 {
		return fmt.Errorf("server/%s: %w", name, errRevokesQuorum)
	}
	return nil
}
