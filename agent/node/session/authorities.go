package session

import "slices"

const (
	// authoritiesMax is how many authorities an agent believes at most, and authorityBytesMax how long the hash of one is.
	authoritiesMax    = 8
	authorityBytesMax = 64
)

// authoritiesGarbled reports whether an agent has said more of its authorities than any says.
func authoritiesGarbled(hashes []string) bool {
	return len(hashes) > authoritiesMax || slices.ContainsFunc(hashes, func(hash string) bool { return len(hash) > authorityBytesMax })
}

// SameAuthorities reports whether the first one is the same, and the others are in any order.
func SameAuthorities(a, b []string) bool {
	if len(a) == 0 || len(b) == 0 || len(a) != len(b) {
		return len(a) == len(b)
	}
	return a[0] == b[0] && !slices.ContainsFunc(a, func(hash string) bool { return !slices.Contains(b, hash) })
}

// authoritiesFor are those that the agent of a stream is to be told: none if it believes them already, cannot follow, or is not to have
// them.
func (s *Service) authoritiesFor(st *stream) []byte {
	if s.config.Authorities == nil {
		return nil
	}
	s.mu.Lock()
	node, held := st.node, st.authorities
	st.told = true // from before they are looked up: what the agent has said may be wrong from then on
	s.mu.Unlock()
	var pem []byte
	if len(held) > 0 {
		var wanted []string
		if pem, wanted = s.config.Authorities(node); SameAuthorities(held, wanted) {
			pem = nil
		}
	}
	if len(pem) == 0 {
		s.mu.Lock()
		st.told = false
		s.mu.Unlock()
	}
	return pem
}
