package clusterstatus

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/admin"
)

// Timeout bounds how long the servers, asked at once, may take to tell their status.
const Timeout = 3 * time.Second

// Report is what `setpoint cluster status` shows.
type Report struct {
	// Servers are the members, sorted by name; those of the kubeconfig if no server answers.
	Servers []Server `json:"servers"`
	Verdict Verdict  `json:"verdict"`
	// Best is as the function Best returns it.
	Best *rest.Config `json:"-"`
}

// Server is one server's answer, or why there is none.
type Server struct {
	Name   string              `json:"name"`
	Error  string              `json:"error,omitempty"`
	Status *admin.ServerStatus `json:"status,omitempty"`
	// Refused is the code with which it refuses to tell its status: 401 without credentials that it accepts, 403 to whom may not know.
	Refused int `json:"refused,omitempty"`
	// address is host:port at which it was asked.
	address string
}

// Silent reports whether no server tells its status.
func (r *Report) Silent() bool {
	return !slices.ContainsFunc(r.Servers, func(s Server) bool { return s.Status != nil })
}

// Unauthorized reports whether no server tells its status, and one or more because they do not accept the credentials.
func (r *Report) Unauthorized() bool {
	return r.Silent() && anyRefuses(r.Servers, http.StatusUnauthorized)
}

func anyRefuses(servers []Server, code int) bool {
	return slices.ContainsFunc(servers, func(s Server) bool { return s.Refused == code })
}

// Fetch asks the servers of a kubeconfig's contexts, and then the members of which they tell and that were not among these.
func Fetch(ctx context.Context, configs map[string]*rest.Config) Report {
	answers := fetchAll(ctx, configs)
	best := newest(answers)
	if best == nil {
		return Report{Servers: answers, Verdict: judge(nil, answers, time.Now())}
	}
	servers, missing := membersOf(best, answers)
	template := configs[slices.Min(slices.Collect(maps.Keys(configs)))]
	others := map[string]*rest.Config{}
	for _, m := range missing {
		others[m.Name] = rest.CopyConfig(template)
		others[m.Name].Host = "https://" + m.Address
	}
	for _, answer := range fetchAll(ctx, others) {
		if answer.Status != nil && answer.Status.Name != answer.Name {
			answer.Status, answer.Error = nil, "server "+answer.Status.Name+" is at its address"
		}
		servers = append(servers, answer)
	}
	slices.SortFunc(servers, func(a, b Server) int { return strings.Compare(a.Name, b.Name) })
	return Report{Servers: servers, Verdict: judge(best, servers, time.Now()), Best: configOf(best, answers, configs)}
}

// Best is how to reach the server that knows the members best: one that was removed may go on to tell of those of its last day. Nil: no
// server answers.
func Best(ctx context.Context, configs map[string]*rest.Config) *rest.Config {
	answers := fetchAll(ctx, configs)
	return configOf(newest(answers), answers, configs)
}

// configOf is how the server was reached whose status is one of the answers.
func configOf(status *admin.ServerStatus, answers []Server, configs map[string]*rest.Config) *rest.Config {
	at := slices.IndexFunc(answers, func(s Server) bool { return s.Status != nil && s.Status == status })
	if at < 0 {
		return nil
	}
	return configs[answers[at].Name]
}

// newest is the answer that knows the members best: of a server that has a leader, of the highest term, with most of the log.
func newest(answers []Server) (best *admin.ServerStatus) {
	rank := func(s *admin.ServerStatus) int {
		if s.Leader != "" {
			return 1
		}
		return 0
	}
	for _, a := range answers {
		if a.Status == nil || len(a.Status.Servers) == 0 {
			continue
		}
		if best == nil || cmp.Or(
			cmp.Compare(rank(a.Status), rank(best)), cmp.Compare(a.Status.Term, best.Term), cmp.Compare(a.Status.Applied, best.Applied),
		) > 0 {
			best = a.Status
		}
	}
	return best
}

// membersOf returns what is known of each member by the answers, and the members that nobody has asked.
func membersOf(best *admin.ServerStatus, answers []Server) (servers []Server, missing []admin.MemberStatus) {
	seen := map[string]bool{}
	for _, m := range best.Servers {
		if seen[m.Name] { // two lives of one server
			continue
		}
		seen[m.Name] = true
		at := slices.IndexFunc(answers, func(a Server) bool { return a.Status != nil && a.Status.Name == m.Name })
		if at < 0 {
			at = slices.IndexFunc(answers, func(a Server) bool { return a.Status == nil && a.address == m.Address })
		}
		if at < 0 {
			missing = append(missing, m)
			continue
		}
		server := answers[at]
		server.Name = m.Name
		servers = append(servers, server)
	}
	return servers, missing
}

// fetchAll asks all servers at once.
func fetchAll(ctx context.Context, configs map[string]*rest.Config) []Server {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	names := slices.Sorted(maps.Keys(configs))
	reports := make([]Server, len(names))
	var asking sync.WaitGroup
	for i, name := range names {
		asking.Go(func() { reports[i] = fetch(ctx, name, configs[name]) })
	}
	asking.Wait()
	return reports
}

func fetch(ctx context.Context, name string, config *rest.Config) Server {
	report := Server{Name: name}
	if at, err := url.Parse(config.Host); err == nil {
		report.address = at.Host
	}
	status, err := admin.FetchStatus(ctx, config)
	if err != nil {
		report.Error, report.Refused = whyNoAnswer(err), refusalOf(err)
		return report
	}
	report.Status = status
	return report
}
