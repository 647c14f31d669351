package registration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/setpoint-io/setpoint/agent/base/wait"
)

const (
	// infoTimeout is how long a plugin may take to say what it is. The connection to its socket is part of it.
	infoTimeout = 10 * time.Second
	// notifyTimeout is how long it may take to hear what came of that. Upstream's.
	notifyTimeout = 5 * time.Second
	// Pauses after a registration that failed. Upstream's.
	retryMin = 500 * time.Millisecond
	retryMax = 2*time.Minute + 2*time.Second
)

// plugin is what one socket leads to.
type plugin struct {
	path     string
	handlers map[string]Handler
	logger   *slog.Logger
	// used is set while it is registered, with the name and endpoint that it gave.
	used           Handler
	name, endpoint string
}

// follow registers the plugin and waits for the end of ctx.
func (p *plugin) follow(ctx context.Context) {
	for pause := retryMin; ; pause = min(2*pause, retryMax) {
		err := p.register(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			break
		}
		p.logger.Warn("cannot register a plugin yet", "err", err)
		if !wait.For(ctx, pause) {
			return
		}
	}
	p.logger.Info("registered a plugin", "plugin", p.name, "endpoint", p.endpoint)
	<-ctx.Done()
}

// leave ends the use of the plugin.
func (p *plugin) leave() {
	if p.used != nil {
		p.logger.Info("a plugin is gone", "plugin", p.name)
		p.used.Deregister(p.name, p.endpoint)
		p.used = nil
	}
}

func (p *plugin) register(ctx context.Context) error {
	conn, err := Dial(p.path)
	if err != nil {
		return err
	}
	defer conn.Close()
	client := registration.NewRegistrationClient(conn)
	info, err := askInfo(ctx, client)
	if err != nil {
		return fmt.Errorf("RegisterPlugin error -- failed to get plugin info using RPC GetInfo at socket %s, err: %w", p.path, err)
	}
	if err := p.use(ctx, info); err != nil {
		return notify(ctx, client, err)
	}
	if err := notify(ctx, client, nil); err != nil {
		if ctx.Err() == nil {
			p.leave()
		}
		return fmt.Errorf("RegisterPlugin error -- failed to send registration status at socket %s, err: %w", p.path, err)
	}
	return nil
}

func askInfo(ctx context.Context, client registration.RegistrationClient) (*registration.PluginInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, infoTimeout)
	defer cancel()
	return client.GetInfo(ctx, &registration.InfoRequest{}, grpc.WaitForReady(true))
}

// use hands the plugin to the handler of its type. The errors are for the plugin's eyes, in upstream's words.
func (p *plugin) use(ctx context.Context, info *registration.PluginInfo) error {
	handler, ok := p.handlers[info.Type]
	if !ok {
		return fmt.Errorf("RegisterPlugin error -- no handler registered for plugin type: %s at socket %s", info.Type, p.path)
	}
	endpoint := cmp.Or(info.Endpoint, p.path)
	if err := handler.Validate(info.Name, endpoint, info.SupportedVersions); err != nil {
		return fmt.Errorf("RegisterPlugin error -- plugin validation failed with err: %w", err)
	}
	if err := handler.Register(ctx, info.Name, endpoint, info.SupportedVersions); err != nil {
		return fmt.Errorf("RegisterPlugin error -- plugin registration failed with err: %w", err)
	}
	p.used, p.name, p.endpoint = handler, info.Name, endpoint
	return nil
}

// notify tells the plugin what came of its registration, and returns why it failed.
func notify(ctx context.Context, client registration.RegistrationClient, failure error) error {
	ctx, cancel := context.WithTimeout(ctx, notifyTimeout)
	defer cancel()
	status := &registration.RegistrationStatus{PluginRegistered: failure == nil}
	if failure != nil {
		status.Error = failure.Error()
	}
	_, err := client.NotifyRegistrationStatus(ctx, status)
	return errors.Join(failure, err)
}
