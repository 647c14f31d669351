package nemesis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
)

// rollback puts a server's disk back to what it was when the fault began, as a snapshot of
// a virtual machine does. It is a follower's, and the others have everything.
type rollback struct{ victim int }

func (*rollback) Name() string             { return "roll-back" }
func (*rollback) Needs() []cluster.Ability { return []cluster.Ability{cluster.Files} }

// Start copies the disk of a server that does not run, and starts it.
func (r *rollback) Start(ctx context.Context, f *Field) (string, error) {
	r.victim = follower(ctx, f)
	err := f.Kill(r.victim)
	if err == nil {
		err = copyFiles(f.DataDir(r.victim), r.copy(f))
	}
	return cluster.Name(r.victim), errors.Join(err, f.Cluster.Start(r.victim))
}

// Stop puts the copy back; all servers that do not run are started afterwards.
func (r *rollback) Stop(_ context.Context, f *Field) error {
	defer os.RemoveAll(r.copy(f))
	return errors.Join(f.Kill(r.victim), removeAllIn(f.DataDir(r.victim)), copyFiles(r.copy(f), f.DataDir(r.victim)))
}

// copy is beside the disk: that of one server is small.
func (r *rollback) copy(f *Field) string { return f.DataDir(r.victim) + ".earlier" }

// copyFiles copies what is in a folder into another, which is made if it is not there.
func copyFiles(from, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	if out, err := exec.Command("cp", "-a", "--sparse=always", from+"/.", to).CombinedOutput(); err != nil {
		return fmt.Errorf("cp: %w: %s", err, out)
	}
	return nil
}

func removeAllIn(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
	}
	return err
}
