package encryption

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/server/options/encryptionconfig"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/identity"
	"k8s.io/apiserver/pkg/storage/value/encrypt/secretbox"
)

// secretboxPrefix begins what upstream's provider secretbox has encrypted.
const secretboxPrefix = "k8s:enc:secretbox:v1:"

var (
	errNoKey = errors.New("no key of this server's encryption configuration fits")

	secrets = schema.GroupResource{Resource: "secrets"}
)

// generation is one configuration. Nobody changes it.
type generation struct {
	number uint64
	// given is the administrator's, own the cluster's.
	given, own *encryptionconfig.EncryptionConfiguration
	// known are the transformers that were asked for, by schema.GroupResource.
	known sync.Map
	// close ends the connections to plugins; grace is how long requests may need them.
	close context.CancelFunc
	grace time.Duration
}

func newGeneration(ctx context.Context, config Config) (*generation, error) {
	ctx, cancel := context.WithCancel(ctx)
	g := &generation{close: cancel}
	var err error
	if g.own, err = loadOwn(ctx, config); err == nil {
		g.given, err = load(ctx, config, config.File)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	g.grace = g.given.KMSCloseGracePeriod + g.own.KMSCloseGracePeriod
	return g, nil
}

func load(ctx context.Context, config Config, file string) (*encryptionconfig.EncryptionConfiguration, error) {
	if file == "" {
		return &encryptionconfig.EncryptionConfiguration{}, nil
	}
	return encryptionconfig.LoadEncryptionConfig(ctx, file, true, config.ServerName)
}

// loadOwn reads the cluster's own configuration, or makes it of its key.
func loadOwn(ctx context.Context, config Config) (*encryptionconfig.EncryptionConfiguration, error) {
	if _, err := os.Stat(config.OwnFile); !errors.Is(err, fs.ErrNotExist) {
		return load(ctx, config, config.OwnFile)
	}
	box := value.PrefixTransformer{
		Prefix: []byte(secretboxPrefix + config.OwnKey.Name + ":"), Transformer: secretbox.NewSecretboxTransformer(config.OwnKey.Secret),
	}
	plain := value.PrefixTransformer{Transformer: identity.NewEncryptCheckTransformer()}
	return &encryptionconfig.EncryptionConfiguration{
		Transformers: map[schema.GroupResource]value.Transformer{secrets: value.NewPrefixTransformers(errNoKey, box, plain)},
	}, nil
}

// transformer returns what the resource's values go through: the administrator's, if it
// names the resource, with the cluster's own behind it, so that what was encrypted
// without the administrator's configuration stays readable.
func (g *generation) transformer(resource schema.GroupResource) value.Transformer {
	if known, ok := g.known.Load(resource); ok {
		return known.(found).transformer
	}
	var layers []value.PrefixTransformer // the empty prefix: each is asked until one can
	for _, layer := range []*encryptionconfig.EncryptionConfiguration{g.given, g.own} {
		if names(layer, resource) {
			t := encryptionconfig.StaticTransformers(layer.Transformers).TransformerForResource(resource)
			layers = append(layers, value.PrefixTransformer{Transformer: t})
		}
	}
	var f found
	switch len(layers) {
	case 0:
	case 1:
		f.transformer = layers[0].Transformer
	default:
		f.transformer = value.NewPrefixTransformers(errNoKey, layers...)
	}
	g.known.Store(resource, f)
	return f.transformer
}

// found holds what may be nil.
type found struct{ transformer value.Transformer }

// names reports whether a configuration has a rule for the resource, one with an asterisk included.
func names(c *encryptionconfig.EncryptionConfiguration, resource schema.GroupResource) bool {
	for _, rule := range []schema.GroupResource{resource, {Group: resource.Group, Resource: "*"}, {Group: "*", Resource: "*"}} {
		if c.Transformers[rule] != nil {
			return true
		}
	}
	return false
}

func (g *generation) check(ctx context.Context) error {
	r, err := request(ctx)
	if err != nil {
		return err
	}
	for _, layer := range []*encryptionconfig.EncryptionConfiguration{g.given, g.own} {
		for _, c := range layer.HealthChecks {
			if err := c.Check(r); err != nil {
				return fmt.Errorf("%s: %w", c.Name(), err)
			}
		}
	}
	return nil
}
