package host

import (
	"context"
	"net/http"
	"os"

	"github.com/setpoint-io/setpoint/agent/base/private"
	"github.com/setpoint-io/setpoint/agent/node/knownservers"
	"github.com/setpoint-io/setpoint/agent/node/revoked"
	"github.com/setpoint-io/setpoint/internal/clusterlife"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust/join"
)

// Join returns what the agent holds, or makes it a node, by servers of the life of the cluster that its data directory has pinned.
func (o *Options) Join(ctx context.Context) (*join.Membership, error) {
	life, err := o.life()
	if err != nil {
		return nil, err
	}
	return o.join(ctx, life, o.known(), revoked.Open(o.DataDir, private.WriteFile, o.Logger).Judge)
}

// life is the one that the data directory has pinned.
func (o *Options) life() (*clusterlife.Pin, error) {
	return clusterlife.Open(o.DataDir, private.WriteFile, o.Logger)
}

// known are the servers that the data directory knows, or --servers.
func (o *Options) known() *knownservers.List {
	return knownservers.Open(o.DataDir, o.Servers, private.WriteFile, o.Logger)
}

// join makes this machine a node, and renews what it holds, by servers that are not revoked.
func (o *Options) join(
	ctx context.Context, life *clusterlife.Pin, known *knownservers.List, judge *revocation.Judge,
) (*join.Membership, error) {
	through := func(next http.RoundTripper) http.RoundTripper { return judge.Answers(life.Through(next)) }
	config := join.MembershipConfig{NodeName: o.Name, DataDir: o.DataDir, Servers: known.Now, Through: through, Logger: o.Logger}
	config.Believed = judge.Believe
	if o.TokenFile != "" {
		config.Token = o.token
	}
	return join.Open(ctx, config)
}

func (o *Options) token(ctx context.Context) (text string, err error) {
	return text, process.AwaitFile(ctx, o.Logger, o.TokenFile, func() error {
		content, err := os.ReadFile(o.TokenFile)
		text = string(content)
		return err
	})
}
