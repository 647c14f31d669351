package knownservers

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// Max is how many servers are kept; what is told beyond that is left out.
	Max = 16
	// fileName is where the list lies below an agent's data directory: what makes a node forget its cluster makes it forget these.
	fileName = "pki/servers"
	// addressBytesMax bounds one host:port: a DNS name has at most 253.
	addressBytesMax = 260
	// doubtAfter is how long no server of the list may have said anything until those are asked too with which the agent was told to
	// begin. A session has an answer about every three seconds.
	doubtAfter = 10 * time.Second
)

var errNoAddress = errors.New("want lines of host:port")

// List is which servers there are. It is safe for concurrent use.
type List struct {
	path   string
	write  WriteFile
	begin  []string
	logger *slog.Logger

	mu    sync.Mutex
	told  []string  // by a server, in this run or an earlier one
	heard time.Time // when one of those told it last in this run
}

// WriteFile replaces the file at path by data at once.
type WriteFile func(path string, data []byte) error

// Open returns the list below dataDir, of an agent that was told to begin at the servers begin, host:port. A file that cannot be read
// is told of and counts as none: the servers say the same again.
func Open(dataDir string, begin []string, write WriteFile, logger *slog.Logger) *List {
	l := &List{path: filepath.Join(dataDir, fileName), write: write, begin: begin, logger: logger}
	text, err := os.ReadFile(l.path)
	if err == nil {
		l.told, err = parse(string(text))
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		logger.Warn("the list of servers cannot be read: beginning with --servers", "file", l.path, "err", err)
	}
	return l
}

// Fixed returns a list of servers that is not kept on the disk. A server may tell another one.
func Fixed(servers []string, logger *slog.Logger) *List {
	return &List{begin: servers, logger: logger}
}

func parse(text string) ([]string, error) {
	servers := strings.Fields(text)
	if taken := acceptable(servers); len(servers) == 0 || len(taken) < len(servers) {
		return nil, errNoAddress
	}
	return servers, nil
}

// acceptable are the first Max addresses that can be dialled, each once.
func acceptable(servers []string) (taken []string) {
	for _, s := range servers {
		host, port, err := net.SplitHostPort(s)
		if err != nil || host == "" || port == "" || len(s) > addressBytesMax || strings.ContainsAny(s, " \t\r\n") {
			continue
		}
		if len(taken) < Max && !slices.Contains(taken, s) {
			taken = append(taken, s)
		}
	}
	return taken
}

// Now returns the servers to ask, the likeliest first. It is empty only if the agent was told of none.
func (l *List) Now() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.told) > 0 && !l.heard.IsZero() && time.Since(l.heard) < doubtAfter {
		return l.told
	}
	all := slices.Clone(l.told)
	for _, s := range l.begin {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// Told takes what the server at an address says of which servers there are, in any order. Nothing is a server that does not tell. An
// address that is not among them, such as that of a load balancer, goes on to be asked: whether this machine reaches the others is not
// known.
func (l *List) Told(from string, servers []string) {
	taken := acceptable(servers)
	if len(taken) == 0 {
		return
	}
	slices.Sort(taken)
	l.mu.Lock()
	defer l.mu.Unlock()
	if slices.Contains(taken, from) {
		l.heard = time.Now()
	}
	if slices.Equal(taken, l.told) {
		return
	}
	l.logger.Info("the servers of the cluster", "servers", taken, "before", l.told)
	l.told = taken
	if l.write == nil {
		return
	}
	if err := l.keep(); err != nil {
		l.logger.Warn("the list of servers was not kept: after a restart this agent begins with an older one", "file", l.path, "err", err)
	}
}

func (l *List) keep() error {
	if err := os.MkdirAll(filepath.Dir(l.path), 0o700); err != nil {
		return err
	}
	if err := l.write(l.path, []byte(strings.Join(l.told, "\n")+"\n")); err != nil {
		return fmt.Errorf("keep the servers: %w", err)
	}
	return nil
}
