package host

import (
	"context"
	"os"

	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/trust/join"
)

// Join returns what the agent holds, or makes it a node.
func (o *Options) Join(ctx context.Context) (*join.Membership, error) {
	config := join.MembershipConfig{NodeName: o.Name, DataDir: o.DataDir, Servers: o.Servers, Logger: o.Logger}
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
