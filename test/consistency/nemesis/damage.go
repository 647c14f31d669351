package nemesis

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
)

// A damaged server has to notice, spread nothing, and heal from the others. It is
// never the leader's disk and never more than one: the others have everything.

// flip inverts one bit in the files of a server that does not run.
type flip struct{}

func (*flip) Name() string             { return "bit-flip" }
func (*flip) Needs() []cluster.Ability { return []cluster.Ability{cluster.Files} }

func (*flip) Start(ctx context.Context, f *Field) (string, error) {
	return damage(ctx, f, func(file *os.File, size int64) (string, error) {
		at := f.random.Int64N(size)
		one := make([]byte, 1)
		if _, err := file.ReadAt(one, at); err != nil {
			return "", err
		}
		one[0] ^= 1 << f.random.IntN(8)
		_, err := file.WriteAt(one, at)
		return fmt.Sprintf("a bit at %d of %d", at, size), err
	})
}

func (*flip) Stop(context.Context, *Field) error { return nil }

// truncate cuts a file of a server that does not run.
type truncate struct{}

func (*truncate) Name() string             { return "cut-file" }
func (*truncate) Needs() []cluster.Ability { return []cluster.Ability{cluster.Files} }

func (*truncate) Start(ctx context.Context, f *Field) (string, error) {
	return damage(ctx, f, func(file *os.File, size int64) (string, error) {
		at := f.random.Int64N(size)
		return fmt.Sprintf("%d of %d bytes left", at, size), file.Truncate(at)
	})
}

func (*truncate) Stop(context.Context, *Field) error { return nil }

// damage kills a follower, does harm to one of its files, and starts it again.
func damage(ctx context.Context, f *Field, harm func(file *os.File, size int64) (string, error)) (string, error) {
	victim := follower(ctx, f)
	if err := f.Kill(victim); err != nil {
		return "", err
	}
	paths, err := files(f.DataDir(victim))
	if err != nil || len(paths) == 0 {
		return cluster.Name(victim) + " has no files", errors.Join(err, f.Cluster.Start(victim))
	}
	path := paths[f.random.IntN(len(paths))]
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return "", err
	}
	text, err := harm(file, info.Size())
	inside, _ := filepath.Rel(f.DataDir(victim), path) // it was found there
	return fmt.Sprintf("%s %s: %s", cluster.Name(victim), inside, text), errors.Join(err, f.Cluster.Start(victim))
}

// meaningless are files and folders whose content nobody reads.
var meaningless = regexp.MustCompile(`^(reserve|quarantine-.*|.*\.kept|` + ballastName + `)$`)

// files are those that hold something.
func files(dir string) ([]string, error) {
	var found []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err == nil && entry.IsDir() && meaningless.MatchString(entry.Name()):
			return filepath.SkipDir
		case err != nil || !entry.Type().IsRegular() || meaningless.MatchString(entry.Name()):
			return err
		}
		if info, err := entry.Info(); err == nil && info.Size() > 0 {
			found = append(found, path)
		}
		return nil
	})
	return found, err
}

// wipe replaces a server's disk by an empty one.
type wipe struct{}

func (*wipe) Name() string             { return "wipe" }
func (*wipe) Needs() []cluster.Ability { return []cluster.Ability{cluster.Files} }

func (*wipe) Start(ctx context.Context, f *Field) (string, error) {
	victim := follower(ctx, f)
	if err := f.Kill(victim); err != nil {
		return "", err
	}
	return cluster.Name(victim), errors.Join(removeAllIn(f.DataDir(victim)), f.Cluster.Start(victim))
}

func (*wipe) Stop(context.Context, *Field) error { return nil }
