package server

import (
	"errors"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
)

// A server with little room is ready and says so; one that falls behind is not.
func TestDiskRoom(t *testing.T) {
	for _, tc := range []struct {
		status diskSpace
		want   error
		gauges string
	}{
		{diskSpace{FreeBytes: 9, HeadroomBytes: 5}, nil, "9 5 0 0"},
		{diskSpace{FreeBytes: 4, HeadroomBytes: 5, Low: true}, discovery.Remark("has little room"), "4 5 1 0"},
		{diskSpace{HeadroomBytes: 5, Low: true, Full: true}, errDiskFull, "0 5 1 1"},
	} {
		room := diskRoom(func() diskSpace { return tc.status })
		if got := room.check(t.Context()); !errors.Is(got, tc.want) {
			t.Errorf("%+v: %v, want %v", tc.status, got, tc.want)
		}
		registry := prometheus.NewRegistry()
		registry.MustRegister(room.metrics()...)
		value := strings.Fields(tc.gauges)
		want := "# HELP setpoint_disk_free_bytes Room on the disk of the data directory.\n# TYPE setpoint_disk_free_bytes gauge\nsetpoint_disk_free_bytes " + value[0] +
			"\n# HELP setpoint_disk_headroom_bytes How much of it must stay free.\n# TYPE setpoint_disk_headroom_bytes gauge\nsetpoint_disk_headroom_bytes " + value[1] +
			"\n# HELP setpoint_disk_low 1 while less is free.\n# TYPE setpoint_disk_low gauge\nsetpoint_disk_low " + value[2] +
			"\n# HELP setpoint_disk_full 1 while this server takes nothing from the leader, for lack of room.\n# TYPE setpoint_disk_full gauge\nsetpoint_disk_full " + value[3] + "\n"
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
			t.Errorf("%+v: %v", tc.status, err)
		}
	}
}
