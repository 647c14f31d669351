package oom

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"

	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/record"
)

const (
	// recordMaxBytes is the longest record that the kernel gives out.
	recordMaxBytes = 8192
	// reason is upstream's.
	reason = "SystemOOM"
)

// Config of Run. NodeName, Open, Events and Logger are required.
type Config struct {
	NodeName string
	// Open opens the kernel's log, where each Read gives one record; KernelLog outside of tests.
	Open   func() (io.ReadCloser, error)
	Events record.EventRecorder
	Logger *slog.Logger
}

// KernelLog opens the log of this machine's kernel behind its last record.
func KernelLog() (io.ReadCloser, error) {
	file, err := os.Open("/dev/kmsg")
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// Run tells of kills until ctx ends. A machine that does not show its kernel's log, as in most containers, is left alone.
func Run(ctx context.Context, cfg Config) {
	log, err := cfg.Open()
	if err != nil {
		cfg.Logger.Debug("cannot read the kernel's log: nobody is told when the machine is out of memory", "err", err)
		return
	}
	stop := context.AfterFunc(ctx, func() { _ = log.Close() }) // ends a Read that waits
	defer stop()
	err = follow(log, func(k kill) {
		cfg.Events.Event(cfg.node(), corev1.EventTypeWarning, reason, k.message())
	})
	if ctx.Err() == nil {
		cfg.Logger.Warn("cannot read on in the kernel's log: nobody is told when the machine is out of memory", "err", err)
		_ = log.Close()
	}
}

func (c Config) node() *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: c.NodeName, UID: types.UID(c.NodeName)}
}

// follow reads records until that fails, and tells of each kill for which the machine had no memory left.
func follow(log io.Reader, tell func(kill)) error {
	buffer, r := make([]byte, recordMaxBytes), report{}
	for {
		n, err := log.Read(buffer)
		switch {
		case errors.Is(err, unix.EPIPE): // records were overwritten; the next Read goes on behind them
			r = report{}
			continue
		case err != nil:
			return fmt.Errorf("the kernel's log: %w", err)
		}
		text, ok := kernelsText(string(buffer[:n]))
		if !ok {
			continue
		}
		if k, ended := r.line(text); ended && k.ofMachine() {
			tell(k)
		}
	}
}
