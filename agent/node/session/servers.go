package session

import "slices"

// SetServers takes the present membership. What a removed server has told of its
// sessions counts as if it had fallen silent.
func (t *Table) SetServers(servers Servers) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.votes = servers.Votes
	for name, p := range t.peers {
		if !slices.ContainsFunc(servers.Peers, func(other Peer) bool { return other.Name == name }) {
			p.removed, p.Voter, p.view = true, false, View{}
		}
	}
	for _, other := range servers.Peers {
		p := t.peers[other.Name]
		if p == nil {
			p = &peer{records: map[string]record{}}
			t.peers[other.Name] = p
		}
		p.Peer, p.removed = other, false
	}
	t.fill() // a peer that went is forgotten
	close(t.regrouped)
	t.regrouped = make(chan struct{})
}

// Voters is how many servers a majority is counted of.
func (t *Table) Voters() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.votersLocked()
}

func (t *Table) votersLocked() (n int) {
	if t.votes {
		n++
	}
	for _, p := range t.peers {
		if p.Voter {
			n++
		}
	}
	return n
}

// Votes says whether this server is one of the Voters.
func (t *Table) Votes() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.votes
}

// GossipAddresses are where the peers gossip, as far as they have said, sorted.
func (t *Table) GossipAddresses() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var addresses []string
	for _, p := range t.peers {
		if p.view.Address != "" {
			addresses = append(addresses, p.view.Address)
		}
	}
	slices.Sort(addresses)
	return addresses
}

// Gossiping says where each peer gossips, by its name, as far as they have said.
func (t *Table) Gossiping() map[string]string {
	t.mu.Lock()
	defer t.mu.Unlock()
	addresses := map[string]string{}
	for name, p := range t.peers {
		if p.view.Address != "" {
			addresses[name] = p.view.Address
		}
	}
	return addresses
}

// present are the peers there are now; changed is closed when there are others.
func (t *Table) present() (peers map[string]Peer, changed <-chan struct{}) {
	t.mu.Lock()
	defer t.mu.Unlock()
	peers = map[string]Peer{}
	for name, p := range t.peers {
		if !p.removed {
			peers[name] = p.Peer
		}
	}
	return peers, t.regrouped
}
