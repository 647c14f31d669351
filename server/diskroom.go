package server

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/setpoint-io/setpoint/apiserver/discovery"
)

var errDiskFull = errors.New("the disk is full: this server takes nothing new from the leader until there is room")

// diskSpace is the store's word on its disk: raftstore.SpaceStatus.
type diskSpace struct {
	FreeBytes, HeadroomBytes int64
	Low, Full                bool
}

// diskRoom returns what the store knows of its disk now.
type diskRoom func() diskSpace

// check fails while the disk is so full that this server takes nothing from the leader: it
// falls behind, and newest reads and watches wait in vain. With little room it still does all
// that it should, and only says so.
func (r diskRoom) check(context.Context) error {
	switch room := r(); {
	case room.Full:
		return errDiskFull
	case room.Low:
		return discovery.Remark("has little room")
	}
	return nil
}

// metrics returns the gauges of the room.
func (r diskRoom) metrics() []prometheus.Collector {
	gauge := func(name, help string, value func(diskSpace) float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(
			prometheus.GaugeOpts{Name: "setpoint_disk_" + name, Help: help},
			func() float64 { return value(r()) },
		)
	}
	return []prometheus.Collector{
		gauge("free_bytes", "Room on the disk of the data directory.", func(s diskSpace) float64 { return float64(s.FreeBytes) }),
		gauge("headroom_bytes", "How much of it must stay free.", func(s diskSpace) float64 { return float64(s.HeadroomBytes) }),
		gauge("low", "1 while less is free.", func(s diskSpace) float64 { return oneIf(s.Low) }),
		gauge(
			"full",
			"1 while this server takes nothing from the leader, for lack of room.",
			func(s diskSpace) float64 { return oneIf(s.Full) },
		),
	}
}

func oneIf(condition bool) float64 {
	if condition {
		return 1
	}
	return 0
}
