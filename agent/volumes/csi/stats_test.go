package csi_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/volumes/csi"
	"github.com/setpoint-io/setpoint/agent/volumes/csi/csitest"
)

const tells = spec.NodeServiceCapability_RPC_GET_VOLUME_STATS

func TestADriverTellsHowFullAVolumeIs(t *testing.T) {
	driver := &csitest.Driver{Capabilities: []spec.NodeServiceCapability_RPC_Type{tells}, Usage: []*spec.VolumeUsage{
		{Unit: spec.VolumeUsage_BYTES, Total: 100, Used: 30, Available: 60},
		{Unit: spec.VolumeUsage_INODES, Total: 10, Used: 3, Available: -1},
	}}
	w := newWorld(t, driver, csiDriver(nil))
	w.register()
	volume := pv(nil)
	if _, err := w.m.Stats(t.Context(), "a", volume); !errors.Is(err, csi.ErrNoStats) {
		t.Errorf("of a pod that does not have it: %v", err)
	}
	mounted := w.mustMount("a", volume)
	got, err := w.m.Stats(t.Context(), "a", volume)
	if err != nil {
		t.Fatal(err)
	}
	numbers := []uint64{*got.CapacityBytes, *got.UsedBytes, *got.AvailableBytes, *got.Inodes, *got.InodesUsed, *got.InodesFree}
	if diff := cmp.Diff([]uint64{100, 30, 60, 10, 3, 0}, numbers); diff != "" {
		t.Error(diff)
	}
	if asked := driver.Last("Stats").(*spec.NodeGetVolumeStatsRequest); asked.VolumeId != "vol" || asked.VolumePath != mounted.Path {
		t.Errorf("asked about %v, want %s", asked, mounted.Path)
	}
}

// TestTheDeviceOfABlockVolumeIsAskedAbout: upstream asks about the device that the pod has.
func TestTheDeviceOfABlockVolumeIsAskedAbout(t *testing.T) {
	driver := &csitest.Driver{Capabilities: []spec.NodeServiceCapability_RPC_Type{tells}, Usage: []*spec.VolumeUsage{{Unit: spec.VolumeUsage_BYTES, Total: 1}}}
	w := newWorld(t, driver, csiDriver(nil))
	w.register()
	volume := pv(func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = to(corev1.PersistentVolumeBlock) })
	w.mustMount("a", volume)
	if _, err := w.m.Stats(t.Context(), "a", volume); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(w.dirs.Plugins(), "kubernetes.io/csi/volumeDevices/publish/pv/a")
	if asked := driver.Last("Stats").(*spec.NodeGetVolumeStatsRequest); asked.VolumePath != want {
		t.Errorf("asked about %s, want %s", asked.VolumePath, want)
	}
}

func TestSomeDriversTellNothing(t *testing.T) {
	for name, c := range map[string]struct {
		driver *csitest.Driver
		change func(*csitest.Driver)
		want   string
	}{
		"it cannot":        {&csitest.Driver{}, func(*csitest.Driver) {}, "there are no stats of the volume"},
		"an empty answer":  {&csitest.Driver{Capabilities: []spec.NodeServiceCapability_RPC_Type{tells}}, func(*csitest.Driver) {}, "there are no stats of the volume"},
		"it does not know": {&csitest.Driver{Capabilities: []spec.NodeServiceCapability_RPC_Type{tells}}, func(d *csitest.Driver) { d.Fail("Stats", errors.New("lost")) }, "rpc error: code = Unknown desc = lost"},
		"it hangs": {&csitest.Driver{Capabilities: []spec.NodeServiceCapability_RPC_Type{tells}}, func(d *csitest.Driver) { d.Hang("Stats", true) },
			"rpc error: code = DeadlineExceeded desc = "}, // whichever side notices first says why
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.driver, csiDriver(nil))
			w.register()
			volume := pv(nil)
			w.mustMount("a", volume)
			c.change(c.driver)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if _, err := w.m.Stats(ctx, types.UID("a"), volume); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("err = %v, want %s", err, c.want)
			}
		})
	}
}
