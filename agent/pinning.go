package agent

import (
	"context"
	"fmt"
	"os"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/setpoint-io/setpoint/agent/base/measure"
	"github.com/setpoint-io/setpoint/agent/resources/pinning"
)

// openPinning learns who has CPUs and memory of their own. It comes after the devices.
func (a *agent) openPinning(ctx context.Context, children *sync.WaitGroup) error {
	cfg := pinning.Config{Settings: a.Settings.Pinning, Dir: a.DataDir, Sys: os.DirFS("/sys"), Runtime: a.Runtime, Logger: a.Logger}
	if cfg.Active() {
		machine, err := measure.ReadMemory(measure.Proc)
		if err != nil {
			return fmt.Errorf("agent: %w", err)
		}
		cfg.MemoryBytes = machine.Total
		cfg.Reserved = a.Settings.Reservation(corev1.ResourceList{
			corev1.ResourceMemory: *resource.NewQuantity(machine.Total, resource.BinarySI),
		})
	}
	if a.devices != nil {
		cfg.Devices = a.devices
	}
	manager, err := pinning.New(cfg)
	if err != nil {
		return fmt.Errorf("agent: %w", err)
	}
	if cfg.Active() {
		a.pinning = manager
		children.Go(func() { manager.Run(ctx) })
	}
	return nil
}
