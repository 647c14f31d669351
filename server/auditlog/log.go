package auditlog

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"gopkg.in/natefinch/lumberjack.v2"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/audit/policy"
	pluginlog "k8s.io/apiserver/plugin/pkg/audit/log"
)

// Stdout as Config.Path writes to the standard output.
const Stdout = "-"

// What is kept, unless somebody says otherwise: as upstream.
const (
	DefaultMaxAgeDays = 366
	DefaultMaxBackups = 100
	DefaultMaxSizeMiB = 100
)

// Config says what is recorded, and where.
type Config struct {
	// PolicyFile is an audit.k8s.io/v1 Policy. Empty: our own, see policy.yaml.
	PolicyFile string
	// Path is the file to write, or Stdout. Empty: there is no log.
	Path string
	// MaxAgeDays and MaxBackups bound the older files that are kept beside it, 0: no
	// bound. MaxSizeMiB is the size at which another file is begun, at least 1.
	MaxAgeDays, MaxBackups, MaxSizeMiB int
	Logger                             *slog.Logger
}

// Log is where events go. It is safe for concurrent use.
type Log struct {
	policy audit.PolicyRuleEvaluator
	sink   audit.Sink
	buffer *buffer
	out    io.WriteCloser
}

//go:embed policy.yaml
var defaultPolicy []byte

var (
	errNoPath = errors.New("--audit-policy-file needs --audit-log-path: where to write (- is standard output)")
	errBounds = errors.New("--audit-log-maxage and --audit-log-maxbackup must not be negative, --audit-log-maxsize at least 1")
)

// Validate says what is wrong with the flags, and with the policy. It opens no log.
func (c Config) Validate() error {
	switch {
	case c.PolicyFile != "" && c.Path == "":
		return errNoPath
	case c.Path != "" && (c.MaxAgeDays < 0 || c.MaxBackups < 0 || c.MaxSizeMiB < 1):
		return errBounds
	case c.PolicyFile == "":
		return nil
	}
	_, err := loadPolicy(c.PolicyFile)
	return err
}

// Start makes a log and runs it until stop is called, which writes what waits, or gives
// a disk that hangs up after stopTimeout. Without a path there is no log: it is nil.
func Start(config Config) (l *Log, stop func() error, err error) {
	if config.Path == "" {
		return nil, func() error { return nil }, nil
	}
	if l, err = New(config); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	return l, func() error {
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(stopTimeout):
			return errStuck
		}
	}, nil
}

// stopTimeout bounds how long an end waits for the disk.
const stopTimeout = 10 * time.Second

var errStuck = errors.New("audit log: the disk hangs; what waited is lost")

// New reads the policy and opens the file. Events wait until Run.
func New(config Config) (*Log, error) {
	rules, err := loadPolicy(config.PolicyFile)
	if err != nil {
		return nil, err
	}
	out, err := open(config)
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return newLog(rules, out, config.Logger), nil
}

func newLog(rules audit.PolicyRuleEvaluator, out io.WriteCloser, logger *slog.Logger) *Log {
	b := newBuffer(out, logger)
	return &Log{
		policy: rules, buffer: b, out: out,
		sink: bounded{pluginlog.NewBackend(b, pluginlog.FormatJson, auditv1.SchemeGroupVersion)},
	}
}

func loadPolicy(path string) (audit.PolicyRuleEvaluator, error) {
	text := defaultPolicy
	if path != "" {
		var err error
		if text, err = os.ReadFile(path); err != nil {
			return nil, fmt.Errorf("audit policy: %w", err)
		}
	}
	rules, err := policy.LoadPolicyFromBytes(text)
	if err != nil {
		return nil, fmt.Errorf("audit policy: %s: %w", path, err)
	}
	return policy.NewPolicyRuleEvaluator(rules), nil
}

// open fails now rather than at the first event. The file is for its owner only.
func open(config Config) (io.WriteCloser, error) {
	if config.Path == Stdout {
		return standardOutput{os.Stdout}, nil
	}
	if err := os.MkdirAll(filepath.Dir(config.Path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(config.Path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	return &lumberjack.Logger{
		Filename: config.Path, MaxAge: config.MaxAgeDays, MaxBackups: config.MaxBackups, MaxSize: config.MaxSizeMiB,
	}, file.Close()
}

// standardOutput is not ours to close.
type standardOutput struct{ io.Writer }

func (standardOutput) Close() error { return nil }

// Sink takes events.
func (l *Log) Sink() audit.Sink { return l.sink }

// Policy says what is recorded of a request.
func (l *Log) Policy() audit.PolicyRuleEvaluator { return l.policy }

// Lost counts events that were not written.
func (l *Log) Lost() prometheus.Collector { return l.buffer.lostTotal }

// Run writes events until ctx ends, then those that wait, and closes the file. What
// comes later is lost.
func (l *Log) Run(ctx context.Context) error {
	l.buffer.run(ctx)
	return l.out.Close()
}
