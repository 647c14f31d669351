package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/setpoint-io/setpoint/internal/aligned"
	"github.com/setpoint-io/setpoint/raftstore/state"
	"github.com/setpoint-io/setpoint/raftstore/watch"
)

const (
	// DefaultRetention and DefaultSizeBytes are what is kept unless somebody says otherwise.
	DefaultRetention = 24 * time.Hour
	DefaultSizeBytes = 1 << 30
	// lookEvery is how often it is looked what is to be trimmed, and whether the disk has room.
	lookEvery = 10 * time.Second
	// writeAfter is how long a block may stay in memory: until then a crash takes it, and the log gives it back.
	writeAfter = 5 * time.Minute
	// purgePause is how long changes are waited for between two files from which values are removed.
	purgePause = time.Millisecond
	// awaitMax is how long an answer waits for changes that the store has and history does not.
	awaitMax = 15 * time.Second
)

// Source is the store whose changes are kept.
type Source interface {
	Root() *state.Root
	Watch(prefix string, after uint64) (*watch.Watcher, error)
	// Bounds are the revisions between which Watch has all changes.
	Bounds() (compacted, last uint64)
}

// Config is what a History needs.
type Config struct {
	Dir    string
	Source Source
	// Retention is how long changes are kept, if SizeBytes do: what is older or more than that is trimmed, a file at a time.
	Retention time.Duration
	SizeBytes int64
	// FileBytes is when another file is begun; 0 is the usual size.
	FileBytes int64
	// Purges is a folder of the store. A key in it, which follows without its first slash, says that what it was before is to be removed.
	// "": there is none.
	Purges string
	// Crowded reports whether the disk has so little room that history must give its own back; nil: never.
	Crowded func() bool
	Logger  *slog.Logger
}

// History is the history on one server's disk.
type History struct {
	config Config

	// mu guards what follows. It is held for no longer than memory takes: the disk is written and files are removed without it. The
	// files are changed by Run's goroutine only.
	mu    sync.Mutex
	files []*file
	open  open
	// closing is the block that is being written, nil if none is.
	closing *open
	// head is the revision up to which changes were taken, moved is closed when it moves.
	head  uint64
	moved chan struct{}
	// oldest is the revision after which history begins.
	oldest uint64
	// lost counts the changes that could not be kept.
	lost uint64
	// damaged are blocks in which a reader met damage.
	damaged map[*block]bool
	past    pastLists
	purging purging
	// trouble is why the last block could not be written, nil if it could.
	trouble error
	closed  bool

	encoder *zstd.Encoder
	// writtenAt and lookedAt are Run's.
	writtenAt, lookedAt time.Time
	// walks has room for walksMax answers at a time.
	walks chan struct{}
}

// Open reads what is in the folder, and makes it if there is none.
func Open(c Config) (*History, error) {
	c.FileBytes = cmp.Or(c.FileBytes, fileBytes)
	if err := os.MkdirAll(c.Dir, dirPerm); err != nil {
		return nil, err
	}
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest),
		zstd.WithWindowSize(blockRawBytes), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	h := &History{
		config: c, encoder: encoder, moved: make(chan struct{}), damaged: map[*block]bool{}, walks: make(chan struct{}, walksMax),
		writtenAt: time.Now(), lookedAt: time.Now(),
	}
	if err = h.removeUnfinished(); err != nil {
		return nil, errors.Join(err, encoder.Close())
	}
	if h.files, err = h.openFiles(); err != nil {
		return nil, errors.Join(err, encoder.Close())
	}
	return h, h.begin()
}

// begin goes on where the files end.
func (h *History) begin() error {
	h.dropEmpty()
	blocks := h.blocks()
	if len(blocks) == 0 || !consecutive(blocks) || h.awayTooLong() {
		compacted, _ := h.config.Source.Bounds()
		h.restart(compacted, h.config.Source.Root().Life)
		return nil
	}
	last := blocks[len(blocks)-1]
	h.oldest, h.head = blocks[0].after, last.last
	h.open = openAfter(last.last, last.lastMillis, last.life)
	newest := h.files[len(h.files)-1]
	if end := last.offset + last.bytes(); end < newest.bytes { // what a crash left
		newest.bytes = end
		return newest.handle.Truncate(end)
	}
	return nil
}

// consecutive reports whether blocks are of one life, in their order.
func consecutive(blocks []*block) bool {
	for i, b := range blocks[1:] {
		former := blocks[i]
		if b.after < former.last || b.life != former.life && former.life != "" {
			return false
		}
	}
	return true
}

// dropEmpty takes what a power failure left from the end of the newest file, and forgets files without a block.
func (h *History) dropEmpty() {
	for len(h.files) > 0 {
		newest := h.files[len(h.files)-1]
		newest.dropUnread()
		if len(newest.blocks) > 0 {
			break
		}
		h.discard("the newest file of history has nothing that can be read", newest)
		h.files = h.files[:len(h.files)-1]
	}
	kept := h.files[:0]
	for _, f := range h.files {
		if len(f.blocks) > 0 {
			kept = append(kept, f)
			continue
		}
		h.discard("a file of history has nothing that can be read", f)
	}
	h.files = kept
}

// discard removes a file that nobody reads.
func (h *History) discard(text string, f *file) {
	h.note(text, errors.Join(f.handle.Close(), f.remove()), "file", f.path)
}

// restart begins history after a revision. Run's goroutine calls it, without mu, or Open.
func (h *History) restart(after uint64, life string) {
	h.mu.Lock()
	former := h.files
	h.files, h.damaged = nil, map[*block]bool{}
	h.past.forget()
	h.oldest, h.head = after, after
	h.open = openAfter(after, 0, life)
	h.announce()
	h.mu.Unlock()
	for _, f := range former {
		h.note("history begins anew", f.remove(), "file", f.path)
		h.letGo(f)
	}
}

func (h *History) note(text string, err error, args ...any) {
	if err != nil {
		args = append(args, "err", err)
	}
	h.config.Logger.Info(text, args...)
}

// blocks are those on the disk, oldest first. The caller holds mu, or is alone.
func (h *History) blocks() (all []*block) {
	for _, f := range h.files {
		all = append(all, f.blocks...)
	}
	return all
}

// Run takes changes until ctx ends, then writes what is in memory.
func (h *History) Run(ctx context.Context) {
	defer h.close()
	for ctx.Err() == nil {
		watcher, err := h.follow()
		if err != nil {
			continue // it was overtaken again
		}
		h.mayOwe()
		h.take(ctx, watcher)
		watcher.Close()
	}
}

// follow returns a watcher of what comes after the head. What the store no longer has is a hole; another life has a history of its own.
func (h *History) follow() (*watch.Watcher, error) {
	life := h.config.Source.Root().Life
	compacted, _ := h.config.Source.Bounds()
	if h.otherLife(life) {
		h.note("the cluster has a new life, whose history begins now", nil, "revision", compacted)
		h.restart(compacted, life)
	}
	head := h.heldUpTo()
	watcher, err := h.config.Source.Watch("", head)
	if err == nil {
		return watcher, nil
	}
	compacted, _ = h.config.Source.Bounds()
	if h.open.changes == 0 && len(h.files) == 0 {
		h.restart(compacted, life)
		return nil, err
	}
	h.config.Logger.Warn("history has a hole: this server got a snapshot, or more changes than it could keep", "after", head, "until", compacted)
	h.flush()
	h.skip(compacted)
	return nil, err
}

// otherLife reports whether a life is not the one whose changes are kept. One without a name got its name later.
func (h *History) otherLife(life string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.open.life != "" && life != "" && life != h.open.life
}

func (h *History) heldUpTo() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.head
}

// skip leaves a hole up to a revision.
func (h *History) skip(to uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.head = max(h.head, to)
	h.open = openAfter(h.head, h.open.millis(), h.open.life)
	h.announce()
}

// take takes what the watcher tells, until it tells no more, or tells of another life.
func (h *History) take(ctx context.Context, watcher *watch.Watcher) {
	for ctx.Err() == nil {
		h.orderOwed()
		wait := aligned.Until(time.Now(), lookEvery)
		if h.mustPurge() {
			h.purgeOne()
			wait = purgePause
		}
		turn, cancel := context.WithTimeout(ctx, wait)
		events, err := watcher.Next(turn)
		cancel()
		quiet := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
		life := h.config.Source.Root().Life
		if err != nil && !quiet || h.otherLife(life) {
			return
		}
		h.add(events, life)
		if quiet || time.Since(h.lookedAt) >= lookEvery {
			h.look(time.Now())
		}
	}
}

// add keeps events.
func (h *History) add(events []watch.Event, life string) {
	for i := range events {
		if h.addOne(&events[i], life) {
			h.flush()
		}
		h.order(&events[i])
	}
}

// addOne keeps an event, and reports whether the block is full.
func (h *History) addOne(e *watch.Event, life string) (full bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if life != "" {
		h.open.life = life
	}
	h.open.add(e)
	h.head = e.Revision
	h.announce()
	return len(h.open.raw) >= blockRawBytes
}

// announce wakes who waits for the head. The caller holds mu.
func (h *History) announce() {
	close(h.moved)
	h.moved = make(chan struct{})
}

// look writes what is in memory for long, and trims.
func (h *History) look(now time.Time) {
	h.lookedAt = now
	if now.Sub(h.writtenAt) >= writeAfter {
		h.flush()
	}
	h.trim(now)
	h.past.expire(now)
}

// flush puts the open block on the disk and begins another. What cannot be written is a hole.
func (h *History) flush() {
	h.writtenAt = time.Now()
	full := h.seal()
	if full == nil {
		return
	}
	err := h.writeBlock(full)
	if noRoom(err) && len(h.files) > 1 {
		h.dropOldest()
		err = h.writeBlock(full)
	}
	if (err == nil) != (h.trouble == nil) {
		h.config.Logger.Warn("whether history can be written has changed: what cannot is a hole in it", "err", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closing = nil
	if h.trouble = err; err != nil {
		h.lost += full.changes
	}
}

// seal takes the open block out to be written, and begins another; nil if it has nothing. Readers see both.
func (h *History) seal() *open {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.open.changes == 0 {
		return nil
	}
	full := h.open
	h.closing = &full
	h.open = openAfter(h.head, full.millis(), full.life)
	return &full
}

// writeBlock writes a block to the newest file, or to another one, which is there only once it has the block.
func (h *History) writeBlock(full *open) error {
	if h.crowded() {
		return errCrowded
	}
	text, headBytes, bodyBytes := full.encode(h.encoder)
	if n := len(h.files); n > 0 && h.files[n-1].bytes < h.config.FileBytes && !h.fileIsOld() {
		b, err := h.files[n-1].write(full, text, headBytes, bodyBytes)
		if err == nil {
			h.wrote(b)
		}
		return err
	}
	f, err := createFile(h.config.Dir, full.after)
	if err != nil {
		return err
	}
	b, err := f.write(full, text, headBytes, bodyBytes)
	if err != nil {
		return errors.Join(err, f.handle.Close(), f.remove())
	}
	if n := len(h.files); n > 0 {
		if err := h.files[n-1].handle.Sync(); err != nil {
			h.config.Logger.Warn("a file of history may not be whole", "file", h.files[n-1].path, "err", err)
		}
	}
	h.wrote(b)
	return nil
}

// wrote counts a block that was written, in place of the one in memory.
func (h *History) wrote(b *block) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := b.file
	f.bytes, f.written = b.offset+b.bytes(), time.Now()
	if f.blocks = append(f.blocks, b); len(f.blocks) == 1 {
		h.files = append(h.files, f)
	}
	h.closing = nil
}

func (h *History) close() {
	h.flush()
	h.mu.Lock()
	h.closed = true
	files := h.files
	h.announce()
	h.mu.Unlock()
	for _, f := range files {
		h.letGo(f)
	}
	if err := h.encoder.Close(); err != nil {
		h.config.Logger.Warn("closing history", "err", err)
	}
}

// await waits until history has a revision of a life, but not for long: if the disk hangs, readers do not.
func (h *History) await(asked context.Context, revision uint64, life string) error {
	ctx, cancel := context.WithTimeout(asked, awaitMax)
	defer cancel()
	for {
		h.mu.Lock()
		head, moved, closed, own := h.head, h.moved, h.closed, h.open.life
		h.mu.Unlock()
		switch {
		case closed:
			return errClosed
		case head >= revision && (own == life || own == "" || life == ""):
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			if err := asked.Err(); err != nil {
				return err
			}
			return fmt.Errorf("%w: it has revision %d, %d is asked for", ErrBehind, head, revision)
		}
	}
}
