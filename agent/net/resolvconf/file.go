package resolvconf

import (
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
)

const (
	// DefaultPath is the node's file where nobody says another.
	DefaultPath = "/etc/resolv.conf"
	// resolvedPath is systemd-resolved's, with the servers that it asks.
	resolvedPath = "/run/systemd/resolve/resolv.conf"
	// bytesMax is how much of a file is read.
	bytesMax = 64 << 10
)

// File is what a resolv.conf says.
type File struct{ Servers, Searches, Options []string }

// Read reads the file at path. Of an unreadable one everything is empty.
func Read(path string) File {
	if path == "" {
		return File{}
	}
	f := read(path)
	if path == DefaultPath && f.onlyLoopback() {
		if others := read(resolvedPath); len(others.Servers) > 0 {
			return others
		}
	}
	return f
}

func read(path string) File {
	opened, err := os.Open(path)
	if err != nil {
		return File{}
	}
	defer opened.Close()
	data, err := io.ReadAll(io.LimitReader(opened, bytesMax))
	if err != nil {
		return File{}
	}
	return Parse(string(data))
}

// Parse reads the text of a file. The last search line counts, as for resolvers.
func Parse(text string) File {
	var f File
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		switch rest := fields[1:]; fields[0] {
		case "nameserver":
			f.Servers = append(f.Servers, rest[:min(len(rest), 1)]...)
		case "search":
			f.Searches = rest
		case "options":
			f.Options = rest
		}
	}
	return f
}

func (f File) onlyLoopback() bool {
	return len(f.Servers) > 0 && !slices.ContainsFunc(f.Servers, func(s string) bool {
		address, err := netip.ParseAddr(s)
		return err != nil || !address.IsLoopback()
	})
}
