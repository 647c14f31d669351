package founded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"
)

// formerLivesMax bounds how many former lives a record names; the oldest go first.
const formerLivesMax = 64

var (
	// ErrBefore: the cluster was founded before, with other data directories than this server's.
	ErrBefore = errors.New("the cluster was founded before")
	// ErrUnreadable: there is a record that cannot be read.
	ErrUnreadable = errors.New("the record of the cluster's founding cannot be read")
)

// Server is a member of the cluster: its member id, and its address as host:port.
type Server struct {
	ID      string `json:"id"`
	Address string `json:"address"`
}

// Record says that a cluster was founded.
type Record struct {
	// Founded is when, the zero time if a server with older data has written the record.
	Founded time.Time `json:"founded,omitzero"`
	// Founders are the nonces of the data directories that were counted, by the servers' names.
	Founders map[string]string `json:"founders,omitempty"`
	// Life is the name of the present life, "" while it has none; FormerLives are those it comes of, the oldest first.
	Life        string   `json:"life,omitempty"`
	FormerLives []string `json:"formerLives,omitempty"`
	// Servers are the members that were known last.
	Servers []Server `json:"servers,omitempty"`
}

// Keeper keeps the bytes of one record. Several servers may share one.
type Keeper interface {
	// Load returns an error that wraps fs.ErrNotExist if there is none.
	Load() ([]byte, error)
	// Save replaces it whole or not at all. What was saved survives a power cut.
	Save([]byte) error
	// String says where it is, for messages.
	String() string
}

// Book is one server's access to its record. Its methods may be called from any goroutine.
type Book struct {
	keeper Keeper // nil: there is no record, and nothing is kept

	mu     sync.Mutex
	record *Record // what was read or written last, nil if there was none
}

// Open returns the book of a keeper, which may be nil, and reads it.
func Open(keeper Keeper) *Book {
	b := &Book{keeper: keeper}
	_ = b.read() // whoever must know asks MayFound
	return b
}

func (b *Book) read() error {
	if b.keeper == nil {
		return nil
	}
	text, err := b.keeper.Load()
	if errors.Is(err, fs.ErrNotExist) {
		b.record = nil
		return nil
	}
	var record Record
	if err == nil {
		err = json.Unmarshal(text, &record)
	}
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrUnreadable, b.keeper, err)
	}
	b.record = &record
	return nil
}

// MayFound refuses to let a server found the cluster, with ErrBefore, if there is a record of other data directories than
// its own, which has the nonce; and with ErrUnreadable if nobody can know.
func (b *Book) MayFound(name, nonce string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.read(); err != nil {
		return err
	}
	if b.record == nil || nonce != "" && b.record.Founders[name] == nonce {
		return nil
	}
	return b.before()
}

func (b *Book) before() error {
	return fmt.Errorf("%w, as %s says, and this server has none of its data: start a server that has them, or restore a backup; "+
		"if they are lost for good, remove that file on every server to begin with an empty cluster", ErrBefore, b.keeper)
}

// Founded writes down that the cluster is founded, by data directories with these nonces on these servers. A record of the
// same founding stays as it is; of another one, or of more than twice as many, the error wraps ErrBefore: they may have
// founded it without these.
func (b *Book) Founded(founders map[string]string, servers []Server, now time.Time) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.read(); err != nil {
		return err
	}
	if b.record != nil {
		counted := 0
		for name, nonce := range founders {
			if b.record.Founders[name] == nonce {
				counted++
			}
		}
		if counted <= len(b.record.Founders)/2 {
			return b.before()
		}
		return nil
	}
	return b.save(&Record{Founded: now.UTC().Truncate(time.Second), Founders: maps.Clone(founders), Servers: slices.Clone(servers)})
}

// Follow notes the present life, if it has a name, and the members. A life that the record has named as a former one is that
// of data which were put back: nothing is noted then.
func (b *Book) Follow(life string, servers []Server) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.keeper == nil || b.record != nil && b.record.follow(life, servers) == nil {
		return nil
	}
	if err := b.read(); err != nil { // another server may have written
		return err
	}
	if b.record == nil {
		return b.save(&Record{Life: life, Servers: slices.Clone(servers)})
	}
	if next := b.record.follow(life, servers); next != nil {
		return b.save(next)
	}
	return nil
}

// follow returns the record that follows, nil if it is the same.
func (r *Record) follow(life string, servers []Server) *Record {
	if slices.Contains(r.FormerLives, life) {
		return nil
	}
	next := *r
	if life != "" && life != r.Life {
		next.Life = life
		if r.Life != "" {
			next.FormerLives = chain(r.FormerLives, r.Life)
		}
	}
	if len(servers) > 0 {
		next.Servers = slices.Clone(servers)
	}
	if next.Life == r.Life && slices.Equal(next.Servers, r.Servers) {
		return nil
	}
	return &next
}

// chain adds a life to those that come before, of which the oldest go first.
func chain(former []string, life string) []string {
	former = append(slices.Clone(former), life)
	return former[max(0, len(former)-formerLivesMax):]
}

// Adopt notes that the next life comes of this one too: that of a backup which is restored here.
func (b *Book) Adopt(life string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.read(); err != nil || b.keeper == nil || life == "" {
		return err
	}
	record := Record{}
	if b.record != nil {
		record = *b.record
	}
	if record.Life == life || slices.Contains(record.FormerLives, life) {
		return nil
	}
	record.FormerLives = chain(record.FormerLives, life)
	return b.save(&record)
}

func (b *Book) save(next *Record) error {
	if b.keeper == nil {
		return nil
	}
	text, err := json.MarshalIndent(next, "", "  ")
	if err != nil {
		return err
	}
	if err := b.keeper.Save(append(text, '\n')); err != nil {
		return fmt.Errorf("writing down that the cluster was founded: %w: the folder must be writable for this server", err)
	}
	b.record = next
	return nil
}

// Kept reports whether there is a record.
func (b *Book) Kept() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.record != nil
}

// Servers are the members that were known last.
func (b *Book) Servers() []Server {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.record == nil {
		return nil
	}
	return slices.Clone(b.record.Servers)
}

// IDs are the member ids of Servers.
func (b *Book) IDs() []string {
	var ids []string
	for _, server := range b.Servers() {
		ids = append(ids, server.ID)
	}
	return ids
}

// Among leaves those founders that were counted when the cluster was founded, all if it was not yet: another one, as the
// server itself, may have voted and lost that. Errors are those of MayFound.
func (b *Book) Among(name, nonce string, fresh map[string]string) (map[string]string, error) {
	if err := b.MayFound(name, nonce); err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	counted := maps.Clone(fresh)
	maps.DeleteFunc(counted, func(peer, its string) bool { return b.record != nil && b.record.Founders[peer] != its })
	return counted, nil
}

// FormerLives are those that a life comes of, the oldest first; none if it is not the present one of the record.
func (b *Book) FormerLives(life string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.record == nil || life == "" || b.record.Life != life {
		return nil
	}
	return slices.Clone(b.record.FormerLives)
}
