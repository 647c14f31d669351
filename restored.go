package setpoint

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/simulated"
	"github.com/setpoint-io/setpoint/internal/clusterclock"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
	"github.com/setpoint-io/setpoint/server"
	"github.com/setpoint-io/setpoint/server/offline"
)

// Restored is what a backup holds, in memory. It runs nothing.
type Restored struct {
	memory *server.Memory
	trust  *trust.Cluster
	// ahead is by how much the clock of the server that made the backup is ahead of the process's.
	ahead time.Duration
	// Revision is the one that a cluster begins with that is started from it.
	Revision uint64
}

// ReadBackup reads what `setpoint backup create` writes, to its end. rewrite, if not nil, makes of each stored value what the copy
// holds in its place, nil to leave it out. Values that are encrypted in the archive stay so, and the copy cannot read them.
func ReadBackup(ctx context.Context, archive io.Reader, rewrite func(key, uid string, value []byte) []byte) (*Restored, error) {
	keys, err := trust.NewCluster(time.Now())
	if err != nil {
		return nil, err
	}
	keys.NodeToken = tokens.Token{} // nobody joins a copy
	self := trust.Server{Name: "server-1", Endpoint: (&Cluster{}).endpoint(0)}
	memory, found, err := offline.RestoreInMemory(ctx, archive, self, rewrite)
	if err != nil {
		return nil, err
	}
	return &Restored{memory, keys, max(0, time.Until(found.Time)), found.Revision}, nil
}

// PlayedNode is a Node of a backup that a simulated one plays: it carries the label simulated.Label.
type PlayedNode struct {
	Name string
	// Off: nobody plays it until SwitchNode. Lost: it is known not to live.
	Off, Lost bool
	// Notice is how long it takes until it is known that it no longer lives.
	Notice time.Duration
}

// Played is who plays the nodes of a backup.
type Played struct {
	Nodes []PlayedNode
	// Habit is how their pods behave; nil: as those of other simulated nodes.
	Habit func(*corev1.Pod) simulated.Habit
}

// Start starts a cluster in memory that goes on from the backup, with another authority and other certificates. Of the config,
// InMemory is meant, and there is one replica. It runs until Stop or the end of ctx. Addresses in a backup are those of a cluster that
// lives: whatever the copy would connect to is refused, and webhooks are not asked. Unless config names loops, autoscalers and CronJobs
// do nothing.
func (r *Restored) Start(ctx context.Context, config Config, played Played) (*Cluster, error) {
	config.InMemory, config.Replicas, config.SimulatedNodes = true, 1, 0
	config.DisabledAdmission = append(slices.Clone(config.DisabledAdmission), "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook")
	var err error
	if config.Loops == nil {
		// What a copy is asked about is not what these do meanwhile.
		config.Loops, err = server.LoopsWithout("horizontal-pod-autoscaler-controller", "cronjob-controller")
	}
	if err != nil {
		return nil, err
	}
	meant, err := config.parse()
	if err != nil {
		return nil, err
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	c := &Cluster{
		config: config, settings: meant, memories: []*server.Memory{r.memory.Copy()}, trust: r.trust.Copied(),
		clock: clusterclock.New(r.ahead),
	}
	c.played = newPower(played, c.clock)
	for _, node := range played.Nodes {
		c.outage.Set(node.Name, node.Off || node.Lost)
	}
	return c.start(ctx)
}

var errOutside = errors.New("a copy of a cluster connects to nothing outside")

// nothingOutside is for server.Config.DialOutside.
func nothingOutside(context.Context, string, string) (net.Conn, error) { return nil, errOutside }
