package agent

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	pluginregistration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"

	"github.com/setpoint-io/setpoint/agent/api/podresources"
	"github.com/setpoint-io/setpoint/agent/base/registration"
	"github.com/setpoint-io/setpoint/agent/pods"
	"github.com/setpoint-io/setpoint/agent/resources/claims"
	"github.com/setpoint-io/setpoint/agent/resources/devices"
)

// openPlugins finds plugins and uses them: CSI drivers, device plugins and DRA drivers.
func (a *agent) openPlugins(ctx context.Context, children *sync.WaitGroup) error {
	if !a.Plugins {
		return nil
	}
	if err := a.openDrivers(ctx, children); err != nil {
		return err
	}
	if err := a.openDevices(ctx, children); err != nil {
		return err
	}
	if err := a.openClaims(ctx, children); err != nil {
		return err
	}
	children.Go(func() {
		err := registration.Run(ctx, registration.Config{
			Dir: a.dirs().PluginRegistry(), Logger: a.Logger,
			Handlers: map[string]registration.Handler{
				pluginregistration.CSIPlugin: a.csi, pluginregistration.DevicePlugin: a.devices, pluginregistration.DRAPlugin: a.claims,
			},
		})
		if err != nil {
			a.Logger.Error("no more plugins are found", "err", err)
		}
	})
	return nil
}

// openDevices lets device plugins register.
func (a *agent) openDevices(ctx context.Context, children *sync.WaitGroup) (err error) {
	a.devices, err = devices.New(ctx, devices.Config{
		Dir: a.dirs().DevicePlugins(), Changed: a.look, Affected: a.lookAt, Logger: a.Logger,
	})
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	children.Go(func() {
		if err := a.devices.Run(ctx); err != nil {
			a.Logger.Error("device plugins cannot register", "err", err)
		}
	})
	return nil
}

// openClaims uses the DRA drivers that are found.
func (a *agent) openClaims(ctx context.Context, children *sync.WaitGroup) (err error) {
	a.claims, err = claims.New(ctx, claims.Config{
		NodeName: a.NodeName, Client: a.Client, File: a.dirs().Claims(), Affected: a.lookAt, Logger: a.Logger,
	})
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	children.Go(func() { a.claims.Run(ctx) })
	return nil
}

// tellResources answers monitors that ask which pod has which device.
func (a *agent) tellResources(ctx context.Context, children *sync.WaitGroup, manager *pods.Manager) {
	if a.devices == nil {
		return
	}
	socket := filepath.Join(a.dirs().PodResources(), "kubelet.sock")
	children.Go(func() {
		cfg := podresources.Config{Socket: socket, Pods: manager.Pods, Devices: a.devices, Claims: a.claims.Resources}
		if a.pinning != nil {
			cfg.Pinning = a.pinning
		}
		err := podresources.Run(ctx, cfg)
		if err != nil {
			a.Logger.Error("nobody can ask which pod has which device", "err", err)
		}
	})
}

// tellPods answers programs on the node that ask for its pods.
func (a *agent) tellPods(ctx context.Context, children *sync.WaitGroup, runner *podRunner) {
	if runner.api == nil {
		return
	}
	socket := filepath.Join(a.dirs().PodsAPI(), "pods-api.sock")
	children.Go(func() {
		if err := runner.api.Run(ctx, socket, runner.manager); err != nil {
			a.Logger.Error("no program can ask for the node's pods", "err", err)
		}
	})
}

// lookAt has a pod looked at, once pods are run.
func (a *agent) lookAt(pod types.UID) {
	if manager := a.manager.Load(); manager != nil {
		manager.Look(pod)
	}
}
