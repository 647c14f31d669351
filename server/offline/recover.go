package offline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/peers"
	"github.com/setpoint-io/setpoint/server/removed"
)

// recoverAskTimeout bounds asking one member whether it is there.
const recoverAskTimeout = 3 * time.Second

var (
	errQuorumLives = errors.New("the quorum is not lost")
	errNotOwn      = errors.New("the data directory belongs to another server")
)

// StoredReport is what a server that does not run has on its disk, for
// `setpoint cluster recover --inspect`.
type StoredReport struct {
	Server    string `json:"server"`
	ClusterID string `json:"clusterID"`
	// The server with the highest lastTerm, and of those the highest lastIndex, has
	// everything that was acknowledged.
	Term      uint64               `json:"term"`
	LastTerm  uint64               `json:"lastTerm"`
	LastIndex uint64               `json:"lastIndex"`
	Revision  uint64               `json:"revision"`
	Objects   int                  `json:"objects"`
	StateHash string               `json:"stateHash"`
	Members   []admin.MemberStatus `json:"members"`
}

func reportOf(s *raftstore.Stored) StoredReport {
	report := StoredReport{
		Server: s.ServerID, ClusterID: s.ClusterID, Term: s.Term, LastTerm: s.LastTerm, LastIndex: s.LastIndex,
		Revision: s.Root.Revision, Objects: s.Root.Len(), StateHash: fmt.Sprintf("%x", s.Root.Hash()),
	}
	for _, member := range s.Servers {
		report.Members = append(report.Members, admin.MemberStatus{Name: member.ID, Address: member.Address, Voter: member.Voter})
	}
	return report
}

// Recovery is a data directory that is to become the beginning of its cluster's next
// life. Close it in any case.
type Recovery struct {
	// Report is what the directory holds.
	Report StoredReport

	options Options
	servers []trust.Server
	stored  *raftstore.Stored
	others  []*raftstore.Stored
	unlock  func()
}

// OpenRecovery examines the data directory of a stopped server, and changes nothing.
func OpenRecovery(ctx context.Context, o Options) (*Recovery, error) {
	servers, err := o.servers()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(o.DataDir); err != nil {
		return nil, err
	}
	unlock, err := process.Lock(o.DataDir, process.ServerRole)
	if err != nil {
		return nil, err
	}
	stored, err := raftstore.Examine(ctx, o.DataDir, o.Logger)
	if err == nil && stored.ServerID == "" {
		stored.ServerID = o.Name
	}
	if err == nil && raftstore.MemberName(stored.ServerID) != o.Name {
		err = fmt.Errorf("%w: it is %s, not %s", errNotOwn, stored.ServerID, o.Name)
	}
	if err != nil {
		unlock()
		return nil, fmt.Errorf("%s: %w", o.DataDir, err)
	}
	return &Recovery{Report: reportOf(stored), options: o, servers: servers, stored: stored, unlock: unlock}, nil
}

// Close lets go of the data directory.
func (r *Recovery) Close() { r.unlock() }

// Compare adds another survivor: its data directory, or a file with what --inspect
// printed for it.
func (r *Recovery) Compare(ctx context.Context, path string) (StoredReport, error) {
	info, err := os.Stat(path)
	if err != nil {
		return StoredReport{}, err
	}
	var other *raftstore.Stored
	if info.IsDir() {
		other, err = raftstore.Examine(ctx, path, r.options.Logger)
	} else {
		other, err = readReport(path)
	}
	if err != nil {
		return StoredReport{}, fmt.Errorf("%s: %w", path, err)
	}
	r.others = append(r.others, other)
	return StoredReport{Server: other.ServerID, Term: other.Term, LastTerm: other.LastTerm, LastIndex: other.LastIndex}, nil
}

func readReport(path string) (*raftstore.Stored, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var report StoredReport
	if err := json.Unmarshal(text, &report); err != nil {
		return nil, err
	}
	if report.LastIndex == 0 {
		return nil, errors.New("this is not what --inspect prints")
	}
	return &raftstore.Stored{ServerID: report.Server, Term: report.Term, LastTerm: report.LastTerm, LastIndex: report.LastIndex}, nil
}

// Check refuses what is not safe: a newer survivor, a quorum that still answers.
func (r *Recovery) Check(ctx context.Context) error {
	if err := raftstore.CheckNewest(r.stored, r.others); err != nil {
		return err
	}
	cluster, err := trust.LoadCluster(r.options.trustDir())
	if err != nil {
		return fmt.Errorf("asking the other members: %w", err)
	}
	return r.checkQuorum(ctx, cluster)
}

// checkQuorum asks the other voters. One that follows a leader, or a majority that
// answers, means that there is nothing to recover from.
func (r *Recovery) checkQuorum(ctx context.Context, cluster *trust.Cluster) error {
	identity, err := trust.NewLive(cluster.Admin)
	if err != nil {
		return err
	}
	peers, err := peers.Clients(identity, nil, nil)
	if err != nil {
		return err
	}
	voters := 0
	var mu sync.Mutex
	var wait sync.WaitGroup
	var answers []string
	var led error
	for _, member := range r.stored.Servers {
		if !member.Voter {
			continue
		}
		voters++
		if member.ID == r.stored.ServerID {
			continue
		}
		name := raftstore.MemberName(member.ID)
		httpClient, base := peers(name, r.addressOf(name, member.Address))
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, recoverAskTimeout)
			defer cancel()
			status, err := admin.FetchStatusAt(ctx, httpClient, base)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				answers = append(answers, name)
			}
			if err == nil && status.Leader != "" {
				led = fmt.Errorf("%w: %s answers and follows the leader %s", errQuorumLives, name, status.Leader)
			}
		})
	}
	wait.Wait()
	if led == nil && len(answers) > voters/2 {
		led = fmt.Errorf("%w: %d of %d voters answer (%s): start this server and let them elect, or stop those that have lost their data",
			errQuorumLives, len(answers), voters, strings.Join(answers, ", "))
	}
	return led
}

// addressOf: the operator's list is newer than the log.
func (r *Recovery) addressOf(name, stored string) string {
	for _, server := range r.servers {
		if server.Name == name {
			return server.Endpoint
		}
	}
	return stored
}

// Run makes this server the only voter and returns the revision that the store
// begins with. Call Check before.
func (r *Recovery) Run(ctx context.Context) (revision uint64, err error) {
	address := r.addressOf(r.options.Name, "")
	if err := removed.Forget(r.options.DataDir); err != nil { // it was removed from a life that ends here
		return 0, err
	}
	return raftstore.Recover(ctx, r.options.DataDir, address, r.stored, r.others, time.Now(), r.options.Logger)
}

// storedClusterID is the cluster's identity by the trust folder, "" without one.
func (o *Options) storedClusterID() (string, error) {
	cluster, err := trust.LoadCluster(o.trustDir())
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return cluster.CA.ClusterID(), nil
}
