package nemesis

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"syscall"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
)

const (
	ballastName  = "ballast"
	ballastChunk = 1 << 20
)

// fill leaves no space on one server's disk. The others write on; it may stop, and catches up.
type fill struct{}

func (*fill) Name() string             { return "disk-full" }
func (*fill) Needs() []cluster.Ability { return []cluster.Ability{cluster.Disk} }

func (*fill) Start(_ context.Context, f *Field) (string, error) {
	return cluster.Name(cluster.SmallDisk), writeUntilFull(filepath.Join(f.DataDir(cluster.SmallDisk), ballastName))
}

// Stop gives the space back.
func (*fill) Stop(_ context.Context, f *Field) error {
	return os.Remove(filepath.Join(f.DataDir(cluster.SmallDisk), ballastName))
}

func writeUntilFull(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	for size := ballastChunk; err == nil || size > 0; size /= 2 {
		for chunk := make([]byte, max(size, 1)); err == nil; {
			_, err = file.Write(chunk)
		}
		if !errors.Is(err, syscall.ENOSPC) || size <= 1 {
			break
		}
		err = nil
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, file.Close())
}
