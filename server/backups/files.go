package backups

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/setpoint-io/setpoint/raftstore/backup"
	"github.com/setpoint-io/setpoint/server/backups/place"
	"github.com/setpoint-io/setpoint/server/backups/sealed"
)

const (
	suffix     = ".backup"
	timeFormat = "20060102T150405Z"
	// filesMax is how many files of a place are looked at.
	filesMax = 10_000
)

// fileName is that of a server's backup of a time.
func fileName(server string, at time.Time, encrypted bool) string {
	name := server + "-" + at.UTC().Format(timeFormat) + suffix
	if encrypted {
		return name + sealed.Suffix
	}
	return name
}

// madeAt is the time in a file's name, if it is one of the server's.
func madeAt(server, file string) (time.Time, bool) {
	text, isOwn := strings.CutPrefix(file, server+"-")
	text, encrypted := strings.CutSuffix(text, sealed.Suffix)
	at, err := time.Parse(timeFormat, strings.TrimSuffix(text, suffix))
	return at, isOwn && err == nil && file == fileName(server, at, encrypted)
}

// own are the server's backups in a place, oldest first.
func own(ctx context.Context, p place.Place, server string) (files []place.File, err error) {
	all, err := p.Files(ctx, server+"-", filesMax)
	for _, file := range all {
		if _, is := madeAt(server, file.Name); is {
			files = append(files, file)
		}
	}
	slices.SortFunc(files, func(a, b place.File) int { return cmp.Compare(a.Name, b.Name) }) // the times are of one length
	return files, err
}

// Entry is one file of a place.
type Entry struct {
	File string `json:"file"`
	// Made, Revision, Objects are what the file says of itself, Bytes is its size.
	Made     time.Time `json:"made,omitzero"`
	Revision uint64    `json:"revision,omitempty"`
	Objects  int64     `json:"objects,omitempty"`
	Bytes    int64     `json:"bytes"`
	// Encrypted: it was encrypted to somebody whose identity was not given. Made is by its name then.
	Encrypted bool `json:"encrypted,omitempty"`
	// Problem says why it cannot be read.
	Problem string `json:"problem,omitempty"`
}

// List says what the backups of a place hold, of all servers and of people, the oldest first. It reads the beginning of each: only
// 'setpoint backup verify' reads them whole.
func List(ctx context.Context, p place.Place, identities []age.Identity) ([]Entry, error) {
	files, err := p.Files(ctx, "", filesMax)
	if err != nil {
		return nil, err
	}
	list := []Entry{}
	for _, file := range files {
		if strings.HasSuffix(strings.TrimSuffix(file.Name, sealed.Suffix), suffix) && !strings.HasPrefix(file.Name, ".") {
			list = append(list, look(ctx, p, file, identities))
		}
	}
	slices.SortStableFunc(list, func(a, b Entry) int { return cmp.Or(a.Made.Compare(b.Made), cmp.Compare(a.File, b.File)) })
	return list, nil
}

// look reads the beginning of a file.
func look(ctx context.Context, p place.Place, file place.File, identities []age.Identity) Entry {
	e := Entry{File: file.Name, Bytes: file.Bytes}
	header, err := readHeader(ctx, p, file.Name, identities)
	switch {
	case errors.Is(err, sealed.ErrNoIdentity):
		e.Encrypted, e.Made = true, timeInName(file.Name)
	case err != nil:
		e.Problem = err.Error()
	default:
		e.Made, e.Revision, e.Objects = header.Time, header.Revision, header.Objects
	}
	return e
}

func readHeader(ctx context.Context, p place.Place, name string, identities []age.Identity) (h backup.Header, err error) {
	file, err := p.Open(ctx, name)
	if err != nil {
		return h, err
	}
	defer file.Close()
	r, err := open(file, identities)
	if err != nil {
		return h, err
	}
	return r.Header, nil
}

// open reads the beginning of an archive.
func open(file io.Reader, identities []age.Identity) (*backup.Reader, error) {
	in, err := sealed.Open(file, identities)
	if err != nil {
		return nil, err
	}
	return backup.NewReader(in)
}

// timeInName is the time in the name of a server's backup, zero if it is none.
func timeInName(file string) time.Time {
	if i := strings.LastIndexByte(file, '-'); i >= 0 {
		at, _ := madeAt(file[:i], file)
		return at
	}
	return time.Time{}
}
