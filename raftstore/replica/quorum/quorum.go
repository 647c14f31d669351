package quorum

import "github.com/hashicorp/raft"

// Most reports whether self, if it has a vote, and the other voters that accepted
// are most of all voters. Members without a vote prove nothing.
func Most(servers []raft.Server, self raft.ServerID, accepted func(raft.ServerID) bool) bool {
	voters, count := 0, 0
	for _, s := range servers {
		if s.Suffrage != raft.Voter {
			continue
		}
		voters++
		if s.ID == self || accepted(s.ID) {
			count++
		}
	}
	return count > voters/2
}
