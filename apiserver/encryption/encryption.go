package encryption

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/setpoint-io/setpoint/internal/aligned"
	"github.com/setpoint-io/setpoint/internal/reread"
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

// Validate says what is wrong with the flags, and with the file. It asks no plugin.
func (o Options) Validate() error {
	if o.Reload && o.File == "" {
		return errReloadOfNothing
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := load(ended, Config{Options: o}, o.File); err != nil {
		return fmt.Errorf("--encryption-provider-config: %w", err)
	}
	return nil
}

// Config says where the configuration is.
type Config struct {
	Options
	// OwnFile is the cluster's own EncryptionConfiguration. It is always read again when
	// it changes. While it does not exist, Secrets are encrypted with OwnKey, which reads
	// them in any case: backups from before the key was replaced have nothing else.
	OwnFile string
	OwnKey  Key
	// OwnKeys, if not nil, are the keys of OwnFile, or of a cluster that has no file: the
	// first one encrypts. None says that the file is to be read as upstream does.
	OwnKeys func() ([]Key, error)
	// MayWrite, if not nil, waits until this server knows with which of its own keys the
	// cluster encrypts now, or says why it must not encrypt with this one; it has no name
	// if upstream's code has read the file.
	MayWrite func(ctx context.Context, with Key) error
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
	// mu guards what follows after New.
	mu     sync.Mutex
	files  *reread.Follower
	hashes struct{ own, given string } // of the files, as they were read last; "" of none
}

// New reads the configuration. What it starts ends with ctx.
func New(ctx context.Context, config Config) (*Encryption, error) {
	e := &Encryption{config: config}
	text, err := e.read()
	if err != nil {
		return nil, fmt.Errorf("encryption: %w", err)
	}
	first, err := e.newGeneration(ctx)
	if err != nil {
		return nil, fmt.Errorf("encryption: %w", err)
	}
	e.current.Store(first)
	e.files = reread.New(reread.Config{
		Every: reloadInterval, Read: e.read,
		Judge:   func(context.Context, []byte) (reread.Next, error) { return e.prepare(ctx) },
		Warning: "the changed encryption configuration was not taken, the former stays in force", Logger: config.Logger,
	}, text)
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
	for aligned.Sleep(ctx, reloadInterval) {
		_ = e.Reload(ctx) // it has told
	}
}

// Reload looks at the files now, and says what is wrong in them.
func (e *Encryption) Reload(ctx context.Context) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.files.Look(ctx)
}

// OwnKeys are the cluster's own keys that are in force; none if upstream's code has read them.
func (e *Encryption) OwnKeys() []Key { return e.current.Load().keys }

// IsGiven reports whether the administrator has a configuration of his own.
func (e *Encryption) IsGiven() bool { return e.config.File != "" }

// read returns a text that differs whenever the files do. A file that is gone, or is not to
// be read again, is as it was.
func (e *Encryption) read() ([]byte, error) {
	var err error
	if _, missing := os.Stat(e.config.OwnFile); missing == nil {
		if e.hashes.own, err = encryptionconfig.GetEncryptionConfigHash(e.config.OwnFile); err != nil {
			return nil, err
		}
	}
	if e.config.OwnFile == "" && e.config.OwnKeys != nil {
		keys, err := e.config.OwnKeys()
		if err != nil {
			return nil, err
		}
		e.hashes.own = ""
		for _, key := range keys {
			e.hashes.own += " " + key.Name
		}
	}
	if e.config.Reload {
		if e.hashes.given, err = encryptionconfig.GetEncryptionConfigHash(e.config.File); err != nil {
			return nil, err
		}
	}
	return []byte(e.hashes.own + " " + e.hashes.given), nil
}

// prepare makes what the files say, which is in force when its plugins work.
func (e *Encryption) prepare(ctx context.Context) (reread.Next, error) {
	next, err := e.newGeneration(ctx)
	if err != nil {
		return reread.Next{}, err
	}
	return reread.Next{Drop: next.close, Apply: func(ctx context.Context) error {
		if err := next.check(ctx); err != nil {
			return err
		}
		former := e.current.Load()
		next.number = former.number + 1
		e.current.Store(next)
		time.AfterFunc(former.grace, former.close) // requests that began with it may still ask its plugins
		e.config.Logger.Info("another encryption configuration is in force")
		return nil
	}}, nil
}

// request is what upstream's health checks want to be asked with.
func request(ctx context.Context) (*http.Request, error) {
	return http.NewRequestWithContext(ctx, http.MethodGet, "/readyz/kms-providers", nil)
}
