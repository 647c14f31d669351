package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"strings"
	"sync"

	"github.com/setpoint-io/setpoint/agent/base/machine"
	"github.com/setpoint-io/setpoint/agent/net/network/upkeep"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/serve"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// DefaultCRISocket is where `setpoint cri` listens.
const DefaultCRISocket = "unix:///run/setpoint/cri.sock"

// CRIOptions are the flags of `setpoint cri`.
type CRIOptions struct {
	// Listen is the endpoint, "unix:///path".
	Listen                   string
	DataDir, ImagesDir, Name string
	// Registries is a file or folder that says from where images are fetched; empty: from their registries.
	Registries string
	// PodCIDR is the range of the pods' addresses; empty: the kubelet says it.
	PodCIDR string
	// Out learns when calls are taken.
	Out    io.Writer
	Logger *slog.Logger

	podCIDR netip.Prefix
}

// Validate says what is wrong with the flags, and in the files that they name.
func (o *CRIOptions) Validate() error {
	if _, err := serve.Socket(o.Listen); err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	if o.DataDir == "" {
		return errNoDataDir
	}
	if o.PodCIDR != "" {
		prefix, err := netip.ParsePrefix(o.PodCIDR)
		if err != nil || !prefix.Addr().Is4() || prefix.Masked() != prefix {
			return fmt.Errorf("--pod-cidr %q: want a range of IPv4 addresses such as 10.42.0.0/24", o.PodCIDR)
		}
		o.podCIDR = prefix
	}
	if _, err := openRegistries(o.Registries); err != nil {
		return err
	}
	if o.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return err
		}
		o.Name = strings.ToLower(host)
	}
	return trust.ValidateNodeName(o.Name)
}

// RunCRI serves the embedded runtime on a socket until ctx ends. Containers outlive it, and the next one finds them.
func RunCRI(ctx context.Context, o CRIOptions) error {
	if err := machine.Prepare(); err != nil {
		return err
	}
	unlock, err := process.Lock(o.DataDir, process.AgentRole)
	if err != nil {
		return err
	}
	defer unlock()
	// Before the runtime, which takes over pods: somebody else may have the socket.
	listener, err := serve.Listen(ctx, o.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()
	places, err := openRegistries(o.Registries)
	if err != nil {
		return err
	}
	runtime, err := embedded.New(embedded.Config{
		DataDir: runtimeDir(o.DataDir), ImagesDir: o.ImagesDir, Registries: places,
		NodeName: o.Name, GivenCgroups: true, PodCIDR: o.podCIDR, Logger: o.Logger,
	})
	if err != nil {
		return err
	}
	machine.SpareFromOOM(o.Logger)
	ctx, cancel := context.WithCancel(ctx)
	var children sync.WaitGroup
	defer children.Wait()
	defer cancel()
	children.Go(func() { serveImages(ctx, o.DataDir, runtime, o.Logger) })
	keeper := upkeep.New(upkeep.Config{Changes: upkeep.Notifications(o.Logger), Logger: o.Logger})
	keeper.Hold(runtime.Network().Things()...)
	children.Go(func() { keeper.Run(ctx) })
	err = serve.Run(ctx, listener, serve.Config{
		Runtime: runtime, Logger: o.Logger, Ready: func() { fmt.Fprintln(o.Out, "CRI runtime ready on", o.Listen) },
	})
	return errors.Join(err, runtime.Close(context.WithoutCancel(ctx)))
}
