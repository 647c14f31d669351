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

// Lives are the name of the present life, "" while it has none, and what says whether it comes of another one: that may wait while the
// record is written.
func (s *Store) Lives() (life string, comesOf func(former string) bool) {
	root := s.Root()
	return root.Life, func(former string) bool {
		return former != "" && former == root.FormerLife || slices.Contains(s.book.FormerLives(root.Life), former)
	}
}

// known are all servers that may tell of the cluster: of the operator's list, of the log, and of the record.
func (s *Store) known() founded.Places {
	var p founded.Places
	for _, server := range s.cfg.InitialServers {
		p.Add(server.ID, server.Address)
	}
	for _, member := range s.replica.Servers() {
		p.Add(replica.MemberName(member.ID), member.Address)
	}
	for _, member := range s.book.Servers() {
		p.Add(replica.MemberName(member.ID), member.Address)
	}
	return p
}
