package term

import (
	"context"
	"errors"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controllers/podnetwork"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/servicerange"
	"github.com/setpoint-io/setpoint/server/inprocess"
)

// podNetworkRetryInterval is the pause before a server asks again for the network in force.
const podNetworkRetryInterval = time.Second

// judgePodNetwork is the network that this server was started with, and whether that has to be written down. Only the
// leader calls it. A server whose flags cannot be obeyed ends, and another leads.
func (c *Config) judgePodNetwork(ctx context.Context, client kubernetes.Interface) (wanted podnetwork.Network, write bool, err error) {
	wanted, write, err = podnetwork.Judge(ctx, client, c.PodNetwork)
	if cannotBe(err) {
		c.Fatal(err)
	}
	if err == nil && write {
		c.Logger.Info("pod network", "network", wanted.String(), "serviceCIDR", servicerange.Join(wanted.Services, wanted.Services6))
	}
	return wanted, write, err
}

// cannotBe reports that a server was started with a network that the cluster cannot have.
func cannotBe(err error) bool {
	return errors.Is(err, podnetwork.ErrNodesDoNotFit) || errors.Is(err, podnetwork.ErrServicesStay)
}

// CheckPodNetwork ends a server that was started with a network that cannot be: it says so
// at once, and not when it leads one day.
func CheckPodNetwork(ctx context.Context, c Config) {
	client, err := kubernetes.NewForConfig(c.Door.Config(inprocess.Server, 0))
	if err != nil {
		c.Fatal(err)
		return
	}
	for {
		wanted, write, err := podnetwork.Judge(ctx, client, c.PodNetwork)
		switch {
		case cannotBe(err):
			c.Fatal(err)
			return
		case err == nil && write && c.PodNetwork != (podnetwork.Network{}):
			c.Logger.Info("this pod network is put in force when this server leads", "network", wanted.String())
			return
		case err == nil || !process.Sleep(ctx, podNetworkRetryInterval):
			return
		}
	}
}
