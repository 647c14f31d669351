package encryption

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"
)

// reloadInterval is how often the files are looked at.
const reloadInterval = 2 * time.Second

var errReloadOfNothing = errors.New("--encryption-provider-config-automatic-reload must be set with --encryption-provider-config")

// Options are the flags of a server.
type Options struct {
	// File is the administrator's EncryptionConfiguration, or empty.
	File string
	// Reload reads File again when it changes.
	Reload bool
}

// Validate says what is wrong with the flags.
func (o Options) Validate() error {
	if o.Reload && o.File == "" {
		return errReloadOfNothing
	}
	return nil
}

// Config says where the configuration is.
type Config struct {
	Options
	// OwnFile is the cluster's own EncryptionConfiguration. It is always read again when
	// it changes. While it does not exist, Secrets are encrypted with OwnKey.
	OwnFile string
	OwnKey  Key
	// ServerName tells servers apart in the metrics of KMS plugins.
	ServerName string
	Logger     *slog.Logger
}

// Key is a key of the provider secretbox.
type Key struct {
	Name   string
	Secret [32]byte
}

// Encryption is the configuration in force. Its methods may be called from many goroutines.
type Encryption struct {
	config  Config
	current atomic.Pointer[generation]
	told    string // what Run warned of last
}

// New reads the configuration. What it starts ends with ctx.
func New(ctx context.Context, config Config) (*Encryption, error) {
	e := &Encryption{config: config}
	first, err := newGeneration(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("encryption: %w", err)
	}
	e.current.Store(first)
	return e, nil
}

// For returns what turns values of a resource into what is stored and back, or nil if
// they are stored as they are.
func (e *Encryption) For(resource schema.GroupResource) value.Transformer {
	return e.current.Load().transformer(resource)
}

// Generation changes whenever another configuration is in force.
func (e *Encryption) Generation() uint64 { return e.current.Load().number }

// CheckPlugins asks the KMS plugins, if there are any, whether they work.
func (e *Encryption) CheckPlugins(ctx context.Context) error { return e.current.Load().check(ctx) }

// Run looks at the files until ctx ends. What is wrong in them is said once, and the
// configuration stays as it was.
func (e *Encryption) Run(ctx context.Context) {
	ticker := time.NewTicker(reloadInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			e.warn(e.reload(ctx))
		}
	}
}

func (e *Encryption) warn(err error) {
	switch {
	case err == nil:
		e.told = ""
	case err.Error() != e.told:
		e.told = err.Error()
		e.config.Logger.Warn("the changed encryption configuration was not taken, the former stays in force", "err", err)
	}
}

// reload takes what the files say now, if it works.
func (e *Encryption) reload(ctx context.Context) error {
	former := e.current.Load()
	if now, err := readFiles(e.config, former); err != nil || now == former.files {
		return err
	}
	next, err := newGeneration(ctx, e.config)
	if err != nil {
		return err
	}
	if err := next.check(ctx); err != nil {
		next.close()
		return err
	}
	next.number = former.number + 1
	e.current.Store(next)
	time.AfterFunc(former.grace, former.close) // requests that began with it may still ask its plugins
	e.config.Logger.Info("another encryption configuration is in force")
	return nil
}

// request is what upstream's health checks want to be asked with.
func request(ctx context.Context) (*http.Request, error) {
	return http.NewRequestWithContext(ctx, http.MethodGet, "/readyz/kms-providers", nil)
}
