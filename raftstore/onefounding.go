package raftstore

import (
	"slices"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/founded"
	"github.com/setpoint-io/setpoint/raftstore/replica"
)

// writeFounded refuses a second founding, and writes the first one down before this server can vote. The data directory has
// been marked before: after a crash between the two, the founding goes on.
func writeFounded(book *founded.Book, cfg Config, founders map[string]string) error {
	if err := book.MayFound(cfg.Name, founders[cfg.Name]); err != nil {
		return err
	}
	return book.Founded(founders, recorded(cfg.InitialServers), time.Now())
}

func recorded(servers []Server) []founded.Server {
	all := make([]founded.Server, len(servers))
	for i, s := range servers {
		all[i] = founded.Server{ID: s.ID, Address: s.Address}
	}
	return all
}

// keepOld writes the record for data that an older release has founded.
func (s *Store) keepOld() {
	if b := s.replica.Beginning(); b.Phase == replica.Held && !s.book.Kept() {
		s.keepRecord(b.Life, recorded(s.cfg.InitialServers))
	}
}

// keepPresent writes down the present life and members, as a server that takes part knows them.
func (s *Store) keepPresent() {
	var members []Server
	for _, server := range s.replica.Servers() {
		members = append(members, server.Server)
	}
	s.keepRecord(s.Root().Life, recorded(members))
}

func (s *Store) keepRecord(life string, servers []founded.Server) {
	if err := s.book.Follow(life, servers); err != nil && !s.toldRecord {
		s.toldRecord = true
		s.cfg.Logger.Warn("a server that loses its data may not learn where the others are, and that it must not found a cluster", "err", err)
	}
}

// Lives are the name of the present life, "" while it has none, and those that it comes of.
func (s *Store) Lives() (life string, former []string) {
	root := s.Root()
	former = s.book.FormerLives(root.Life)
	if root.FormerLife != "" && !slices.Contains(former, root.FormerLife) {
		former = append(former, root.FormerLife)
	}
	return root.Life, former
}

// places are servers by their names, and the addresses at which each may be, the best first.
type places struct {
	names []Server
	of    map[string][]string
}

// known are all servers that may tell of the cluster: of the operator's list, of the log, and of the record.
func (s *Store) known() places {
	p := places{of: map[string][]string{}}
	for _, server := range s.cfg.InitialServers {
		p.add(server.ID, server.Address)
	}
	for _, member := range s.replica.Servers() {
		p.add(member.ID, member.Address)
	}
	for _, member := range s.book.Servers() {
		p.add(member.ID, member.Address)
	}
	return p
}

func (p *places) add(id, address string) {
	name := replica.MemberName(id)
	if _, known := p.of[name]; !known {
		p.names = append(p.names, Server{ID: name})
	}
	if !slices.Contains(p.of[name], address) {
		p.of[name] = append(p.of[name], address)
	}
}

// countedAt leaves those founders that were counted when the cluster was founded. Another one, as this server itself, may
// have voted and lost that.
func countedAt(book *founded.Book, name, nonce string, fresh map[string]string) (counted map[string]string, err error) {
	if err := book.MayFound(name, nonce); err != nil {
		return nil, err
	}
	counted = map[string]string{}
	for peer, its := range fresh {
		if book.Counted(peer, its) {
			counted[peer] = its
		}
	}
	return counted, nil
}
