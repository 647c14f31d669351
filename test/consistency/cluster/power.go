package cluster

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/setpoint-io/setpoint/test/powercut"
)

// PowerServer is the server whose power can be cut, so that only what it synced is certain
// to be there afterwards.
const PowerServer = 1

// diskDir is where what the file system of PowerServer shows is kept.
func (p *Processes) diskDir() string { return p.DataDir(PowerServer) + ".disk" }

// powerOn mounts the file system. Without FUSE there is none, and no power cut.
func (p *Processes) powerOn() error {
	mountPoint := p.DataDir(PowerServer)
	if _, err := os.Stat("/dev/fuse"); err != nil || !p.cfg.Power {
		return nil
	}
	if err := errors.Join(os.MkdirAll(p.diskDir(), 0o700), os.MkdirAll(mountPoint, 0o700)); err != nil {
		return err
	}
	var err error
	p.power, err = powercut.Mount(p.diskDir(), mountPoint)
	return err
}

// CutPower implements Cluster.
func (p *Processes) CutPower(seed uint64) error {
	if p.power == nil {
		return errNoPower
	}
	err := p.power.Cut(seed)
	return errors.Join(err, p.Kill(PowerServer), p.power.Unmount(), p.powerOn())
}

// SlowSyncs implements Cluster.
func (p *Processes) SlowSyncs(d time.Duration) error {
	if p.power == nil {
		return errNoPower
	}
	p.power.SlowSyncs(d)
	return nil
}

// FailSyncs implements Cluster.
func (p *Processes) FailSyncs(fail bool) error {
	if p.power == nil {
		return errNoPower
	}
	errno := syscall.Errno(0)
	if fail {
		errno = syscall.EIO
	}
	p.power.FailSyncs(errno)
	return nil
}

var errNoPower = errors.New("there is no file system that loses power")
