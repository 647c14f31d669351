package registration

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/fsnotify/fsnotify"
)

// Handler uses the plugins of one type. It is called by several goroutines, for one socket by one at a time.
type Handler interface {
	// Validate says what is wrong with a plugin.
	Validate(name, endpoint string, versions []string) error
	// Register begins to use it.
	Register(ctx context.Context, name, endpoint string, versions []string) error
	// Deregister ends that.
	Deregister(name, endpoint string)
}

// Config of Run; all of it is required.
type Config struct {
	// Dir is where plugins open their sockets; it exists.
	Dir string
	// Handlers are those of the types of plugins that are used here.
	Handlers map[string]Handler
	Logger   *slog.Logger
}

// Run finds plugins until ctx ends. The error is about the folder.
func Run(ctx context.Context, cfg Config) error {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch for plugins: %w", err)
	}
	defer notify.Close()
	w := &watcher{Config: cfg, notify: notify, sockets: map[string]*socket{}}
	defer w.children.Wait()
	if err := w.walk(ctx, cfg.Dir); err != nil {
		return fmt.Errorf("watch for plugins: %w", err)
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case event := <-notify.Events:
			w.happened(ctx, event)
		case err := <-notify.Errors: // events were lost
			w.Logger.Warn("cannot watch for plugins, looking again", "err", err)
			if err := w.walk(ctx, cfg.Dir); err != nil {
				return fmt.Errorf("watch for plugins: %w", err)
			}
		}
	}
}

// watcher is one Run. Only its goroutine uses sockets.
type watcher struct {
	Config
	notify   *fsnotify.Watcher
	sockets  map[string]*socket // by path
	children sync.WaitGroup
}

// socket is one that is spoken to, or was.
type socket struct {
	inode  fs.FileInfo // nil: it was removed
	cancel context.CancelFunc
	done   chan struct{} // closed when its goroutine has ended
}

func (w *watcher) happened(ctx context.Context, event fsnotify.Event) {
	switch {
	case event.Has(fsnotify.Create):
		if err := w.created(ctx, event.Name); err != nil {
			w.Logger.Warn("cannot look at what may be a plugin", "path", event.Name, "err", err)
		}
	case event.Has(fsnotify.Remove), event.Has(fsnotify.Rename):
		w.removed(event.Name)
	}
}

// created: names that begin with a dot are those of sockets that are not ready.
func (w *watcher) created(ctx context.Context, path string) error {
	if strings.HasPrefix(filepath.Base(path), ".") {
		return nil
	}
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err): // it is gone already
		return nil
	case err != nil:
		return err
	case info.IsDir():
		return w.walk(ctx, path)
	case info.Mode()&fs.ModeSocket != 0:
		w.found(ctx, path, info)
	}
	return nil
}

// walk watches a folder and finds what is in it by now, in this order.
func (w *watcher) walk(ctx context.Context, dir string) error {
	if err := w.notify.Add(dir); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := w.created(ctx, filepath.Join(dir, entry.Name())); err != nil {
			w.Logger.Warn("cannot look at what may be a plugin", "path", filepath.Join(dir, entry.Name()), "err", err)
		}
	}
	return nil
}

// found follows a socket, unless it is the one that is followed under this name.
func (w *watcher) found(ctx context.Context, path string, info fs.FileInfo) {
	before := w.sockets[path]
	if before != nil && before.inode != nil && os.SameFile(before.inode, info) && before.inode.ModTime().Equal(info.ModTime()) {
		return
	}
	own, cancel := context.WithCancel(ctx)
	s := &socket{inode: info, cancel: cancel, done: make(chan struct{})}
	w.sockets[path] = s
	w.children.Go(func() {
		defer close(s.done)
		if before != nil {
			before.cancel()
			<-before.done
		}
		p := &plugin{path: path, handlers: w.Handlers, logger: w.Logger.With("socket", path)}
		p.follow(own)
		if ctx.Err() == nil {
			p.leave()
		}
	})
}

// removed ends the use of a socket. It is forgotten when that has ended: one of the same name waits for it.
func (w *watcher) removed(path string) {
	if s := w.sockets[path]; s != nil {
		s.cancel()
		s.inode = nil
	}
	maps.DeleteFunc(w.sockets, func(_ string, s *socket) bool { return s.inode == nil && s.ended() })
}

func (s *socket) ended() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
