package shutdown

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/godbus/dbus/v5"
)

const (
	logindName      = "org.freedesktop.login1"
	logindPath      = dbus.ObjectPath("/org/freedesktop/login1")
	logindInterface = "org.freedesktop.login1.Manager"
	// confDir holds what is put over logind's configuration, confFile our part.
	confDir  = "/etc/systemd/logind.conf.d"
	confFile = "99-setpoint.conf"
	hangUp   = int32(1) // SIGHUP, on which logind reads its configuration again
)

// SystemLogind connects to this machine's logind.
func SystemLogind() (Logind, error) {
	conn, err := dbus.ConnectSystemBus()
	if err != nil {
		return nil, err
	}
	return &logind{conn: conn, confDir: confDir}, nil
}

// logind speaks to systemd-logind on one bus.
type logind struct {
	conn    *dbus.Conn
	confDir string
}

func (l *logind) manager() dbus.BusObject { return l.conn.Object(logindName, logindPath) }

func (l *logind) Delay() (time.Duration, error) {
	v, err := l.manager().GetProperty(logindInterface + ".InhibitDelayMaxUSec")
	if err != nil {
		return 0, fmt.Errorf("how long systemd-logind waits: %w", err)
	}
	microseconds, ok := v.Value().(uint64)
	if !ok {
		return 0, fmt.Errorf("how long systemd-logind waits: %s is no number", v)
	}
	return time.Duration(microseconds) * time.Microsecond, nil
}

func (l *logind) SetDelay(d time.Duration) error {
	if err := os.MkdirAll(l.confDir, 0o755); err != nil {
		return err
	}
	text := fmt.Sprintf("# Pods end before the machine does.\n[Login]\nInhibitDelayMaxSec=%.0f\n", d.Seconds())
	if err := os.WriteFile(filepath.Join(l.confDir, confFile), []byte(text), 0o644); err != nil {
		return err
	}
	systemd := l.conn.Object("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
	return systemd.Call("org.freedesktop.systemd1.Manager.KillUnit", 0, "systemd-logind.service", "all", hangUp).Err
}

func (l *logind) Inhibit() (io.Closer, error) {
	var fd dbus.UnixFD
	call := l.manager().Call(logindInterface+".Inhibit", 0, "shutdown", "setpoint", "pods need time to end", "delay")
	if err := call.Store(&fd); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "inhibitor"), nil
}

func (l *logind) Watch() (<-chan bool, error) {
	signals, out := make(chan *dbus.Signal, 1), make(chan bool)
	l.conn.Signal(signals) // before the first one can come
	err := l.conn.AddMatchSignal(dbus.WithMatchInterface(logindInterface), dbus.WithMatchMember("PrepareForShutdown"),
		dbus.WithMatchObjectPath(logindPath))
	if err != nil {
		return nil, err
	}
	done := l.conn.Context().Done()
	go func() { // ends with the connection, which closes signals
		defer close(out)
		for s := range signals {
			if begins, ok := prepares(s); ok {
				select {
				case out <- begins:
				case <-done:
				}
			}
		}
	}()
	return out, nil
}

// prepares is what the signal says; ok is false for another one.
func prepares(s *dbus.Signal) (begins, ok bool) {
	if s == nil || s.Name != logindInterface+".PrepareForShutdown" || len(s.Body) != 1 {
		return false, false
	}
	begins, ok = s.Body[0].(bool)
	return begins, ok
}

func (l *logind) Close() error { return l.conn.Close() }
