package escape

import (
	"bytes"
	"errors"
	"fmt"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// guardedFile is a file of the host as it was before the attack.
type guardedFile struct {
	name    string
	stat    unix.Stat_t
	content []byte // nil for devices
}

func guard(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: guard FILE...")
	}
	p := pageOf(ts)
	for _, name := range args {
		file, err := look(name)
		ts.Check(err)
		p.guarded = append(p.guarded, file)
		ts.Defer(func() {
			if err := file.restore(); err != nil {
				ts.Logf("%s is not as it was: %v", name, err)
			}
		})
	}
}

func unchanged(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: unchanged")
	}
	for _, file := range pageOf(ts).guarded {
		ts.Check(file.compare())
	}
}

func look(name string) (*guardedFile, error) {
	file := &guardedFile{name: name}
	if err := unix.Stat(name, &file.stat); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if file.stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return file, nil
	}
	var err error
	file.content, err = os.ReadFile(name)
	return file, err
}

func (f *guardedFile) compare() error {
	now, err := look(f.name)
	switch {
	case err != nil:
		return err
	case now.stat.Mode != f.stat.Mode || now.stat.Uid != f.stat.Uid || now.stat.Gid != f.stat.Gid:
		return fmt.Errorf("%s: mode %o owner %d:%d, before the attack %o %d:%d", f.name, now.stat.Mode, now.stat.Uid, now.stat.Gid,
			f.stat.Mode, f.stat.Uid, f.stat.Gid)
	case !bytes.Equal(now.content, f.content):
		return fmt.Errorf("%s: %q, before the attack %q", f.name, now.content, f.content)
	}
	return nil
}

func (f *guardedFile) restore() error {
	if f.compare() == nil {
		return nil
	}
	var err error
	if f.content != nil {
		err = os.WriteFile(f.name, f.content, 0)
	}
	return errors.Join(err, unix.Chown(f.name, int(f.stat.Uid), int(f.stat.Gid)), unix.Chmod(f.name, f.stat.Mode&0o7777))
}
