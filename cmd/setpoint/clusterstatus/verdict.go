package clusterstatus

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/server/admin"
)

// Verdict says in one line how the cluster is.
type Verdict struct {
	Text string `json:"text"`
	// PersonNeeded: it does not mend this by itself, or has not yet.
	PersonNeeded bool `json:"personNeeded"`
}

// judge looks at the servers with the members that best tells of; best is nil if no server tells its status.
func judge(best *admin.ServerStatus, servers []Server, now time.Time) Verdict {
	switch {
	case best != nil:
	case anyRefuses(servers, http.StatusUnauthorized):
		return Verdict{"the servers do not accept the credentials: renew the kubeconfig", true}
	case anyRefuses(servers, http.StatusForbidden):
		return Verdict{"the servers tell administrators alone how they are", true}
	default:
		return Verdict{"no server answers: nothing can be read or written by these addresses", true}
	}
	problems := slices.Concat(availability(best, servers), troubles(servers, now))
	if len(problems) > 0 {
		return Verdict{strings.Join(problems, "; "), true}
	}
	if len(servers) == 1 {
		return Verdict{"the server is up", false}
	}
	return Verdict{fmt.Sprintf("all %d servers are up", len(servers)), false}
}

// availability is what is wrong with who answers, and what it means for writes.
func availability(best *admin.ServerStatus, servers []Server) []string {
	votes := map[string]bool{}
	for _, m := range best.Servers {
		votes[m.Name] = votes[m.Name] || m.Voter
	}
	voters, down, others := 0, 0, []string{}
	for _, s := range servers {
		switch {
		case votes[s.Name]:
			voters++
			if s.Status == nil {
				down++
			}
		case s.Status == nil:
			others = append(others, fmt.Sprintf("%s, which has no vote yet, does not answer", s.Name))
		}
	}
	spare := voters - down - (voters/2 + 1)
	switch {
	case down == 0 && best.Leader == "":
		return append(others, "the servers have no leader: nothing can be written")
	case down == 0:
		return others
	case spare < 0 && best.Leader != "":
		return append(others, fmt.Sprintf("%d of %d servers do not answer from here, though there is a leader", down, voters))
	case spare < 0:
		return append(others, fmt.Sprintf("%s: nothing can be written until %d more answer", ofAll(down, voters), -spare))
	case best.Leader == "":
		return append(others, fmt.Sprintf("%s, and the others have no leader: nothing can be written", ofAll(down, voters)))
	case spare == 0:
		return append(others, ofAll(down, voters)+": one more stops writes")
	}
	return append(others, fmt.Sprintf("%s: %d more stop writes", ofAll(down, voters), spare+1))
}

// ofAll is how many servers are down.
func ofAll(down, all int) string {
	if down == 1 {
		return fmt.Sprintf("1 of %d servers is down", all)
	}
	return fmt.Sprintf("%d of %d servers are down", down, all)
}

// sinceWhen is the time of the last backup.
func sinceWhen(last time.Time) string {
	if last.IsZero() {
		return "the schedule began"
	}
	return last.Format(time.RFC3339)
}

// troubles are those of servers that answer: their disks, backups that are late, certificates that nobody has renewed, and keys that they
// could not exchange.
func troubles(servers []Server, now time.Time) (problems []string) {
	for _, s := range servers {
		if s.Status == nil {
			continue
		}
		for _, held := range s.Status.Held {
			if held.Problem != "" {
				problems = append(problems, fmt.Sprintf("%s: it cannot follow the rotation of %s: %s", s.Name, held.Kind, held.Problem))
			}
		}
		switch {
		case s.Status.FullDisk:
			problems = append(problems, s.Name+": its disk is full, and it falls behind")
		case s.Status.LowSpace:
			problems = append(problems, s.Name+": its disk is nearly full")
		}
		if b := s.Status.Backups; b != nil && b.Late(now) {
			problems = append(problems, fmt.Sprintf("%s: no backup since %s: see its log", s.Name, sinceWhen(b.Last)))
		}
	}
	for _, e := range endings(servers, now) {
		problems = append(problems, fmt.Sprintf("%s %s on %s", e.what, e.verb(now), e.Expires.Format(time.DateOnly)))
	}
	return problems
}
