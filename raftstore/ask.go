package raftstore

import (
	"slices"
	"sync"
)

// askEach asks all servers but self at once and returns what those said that had an
// answer, by their ids. ask bounds itself.
func askEach[T any](servers []Server, self string, ask func(Server) (T, error)) map[string]T {
	var mu sync.Mutex
	var asking sync.WaitGroup
	answers := map[string]T{}
	for _, server := range servers {
		if server.ID == self {
			continue
		}
		asking.Go(func() {
			answer, err := ask(server)
			if err != nil {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			answers[server.ID] = answer
		})
	}
	asking.Wait()
	return answers
}

// voters are the members that have a vote, as this replica knows them.
func (s *Store) voters() []Server {
	var voters []Server
	for _, server := range s.replica.Servers() {
		if server.Voter {
			voters = append(voters, server.Server)
		}
	}
	return voters
}

// isVoter reports whether this server has a vote, as it knows itself.
func (s *Store) isVoter() bool {
	id := s.id()
	return slices.ContainsFunc(s.voters(), func(v Server) bool { return v.ID == id })
}
