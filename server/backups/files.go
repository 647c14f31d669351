package backups

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/raftstore/backup"
)

const (
	suffix     = ".backup"
	partSuffix = ".part"
	timeFormat = "20060102T150405Z"
	// listMax is of how many files List reads what they say.
	listMax = 10_000
)

// fileName is that of a server's backup of a time.
func fileName(server string, at time.Time) string {
	return server + "-" + at.UTC().Format(timeFormat) + suffix
}

// madeAt is the time in a file's name, if it is one of the server's.
func madeAt(server, file string) (time.Time, bool) {
	text, is := strings.CutPrefix(strings.TrimSuffix(file, suffix), server+"-")
	at, err := time.Parse(timeFormat, text)
	return at, is && err == nil && file == fileName(server, at)
}

// own are the server's backups in a folder, oldest first.
func own(folder, server string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	for _, entry := range entries {
		if _, is := madeAt(server, entry.Name()); is && entry.Type().IsRegular() {
			names = append(names, entry.Name())
		}
	}
	slices.Sort(names) // the times are of one length
	return names, err
}

// Entry is one file of a folder.
type Entry struct {
	File string `json:"file"`
	// Made, Revision, Objects are what the file says of itself, Bytes is its size.
	Made     time.Time `json:"made,omitzero"`
	Revision uint64    `json:"revision,omitempty"`
	Objects  int64     `json:"objects,omitempty"`
	Bytes    int64     `json:"bytes"`
	// Problem says why it cannot be read.
	Problem string `json:"problem,omitempty"`
}

// List says what the backups of a folder hold, of all servers and of people, the oldest first. It reads the beginning of each: only
// 'setpoint backup verify' reads them whole.
func List(folder string) ([]Entry, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*"+suffix))
	if err != nil {
		return nil, err
	}
	if _, err := os.ReadDir(folder); err != nil {
		return nil, err
	}
	list := []Entry{}
	for _, file := range files[:min(len(files), listMax)] {
		list = append(list, look(file))
	}
	slices.SortStableFunc(list, func(a, b Entry) int { return cmp.Or(a.Made.Compare(b.Made), cmp.Compare(a.File, b.File)) })
	return list, nil
}

// look reads the beginning of a file.
func look(path string) Entry {
	e := Entry{File: filepath.Base(path)}
	file, err := os.Open(path)
	if err != nil {
		e.Problem = err.Error()
		return e
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil {
		e.Bytes = info.Size()
	}
	r, err := backup.NewReader(file)
	if err != nil {
		e.Problem = err.Error()
		return e
	}
	e.Made, e.Revision, e.Objects = r.Header.Time, r.Header.Revision, r.Header.Objects
	return e
}
