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
	// keys are those of own, none if upstream's code has read them; first is the cluster's first one.
	keys  []Key
	first value.PrefixTransformer
	// of is what has it in force, or had.
	of *Encryption
	// known are the transformers that were asked for, by schema.GroupResource.
	known sync.Map
	// close ends the connections to plugins; grace is how long requests may need them.
	close context.CancelFunc
	grace time.Duration
}

func (e *Encryption) newGeneration(ctx context.Context) (*generation, error) {
	config := e.config
	ctx, cancel := context.WithCancel(ctx)
	g := &generation{close: cancel, first: box(config.OwnKey), of: e}
	var err error
	if g.own, g.keys, err = loadOwn(ctx, config); err == nil {
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

// loadOwn reads the cluster's own configuration, or makes it of its keys.
func loadOwn(ctx context.Context, config Config) (*encryptionconfig.EncryptionConfiguration, []Key, error) {
	if config.OwnKeys != nil {
		if keys, err := config.OwnKeys(); err != nil || len(keys) > 0 {
			return ownOf(keys), keys, err
		}
	}
	if _, err := os.Stat(config.OwnFile); !errors.Is(err, fs.ErrNotExist) {
		own, err := load(ctx, config, config.OwnFile)
		return own, nil, err
	}
	return ownOf([]Key{config.OwnKey}), nil, nil
}

// ownOf encrypts Secrets with the first key.
func ownOf(keys []Key) *encryptionconfig.EncryptionConfiguration {
	var boxes []value.PrefixTransformer
	for _, key := range keys {
		boxes = append(boxes, box(key))
	}
	boxes = append(boxes, value.PrefixTransformer{Transformer: identity.NewEncryptCheckTransformer()})
	return &encryptionconfig.EncryptionConfiguration{
		Transformers: map[schema.GroupResource]value.Transformer{secrets: value.NewPrefixTransformers(errNoKey, boxes...)},
	}
}

func box(key Key) value.PrefixTransformer {
	return value.PrefixTransformer{
		Prefix: []byte(prefixOf(key.Name)), Transformer: secretbox.NewSecretboxTransformer(key.Secret),
	}
}

// prefixOf is what stands before what a key has encrypted.
func prefixOf(name string) string { return secretboxPrefix + name + ":" }

// transformer returns what the resource's values go through: the administrator's, if it
// names the resource, with the cluster's own behind it, so that what was encrypted
// without the administrator's configuration stays readable.
func (g *generation) transformer(resource schema.GroupResource) value.Transformer {
	f := g.find(resource)
	if f.guarded {
		return guarded{f.transformer, resource, g.of}
	}
	return f.transformer
}

func (g *generation) find(resource schema.GroupResource) found {
	if known, ok := g.known.Load(resource); ok {
		return known.(found)
	}
	var layers []value.PrefixTransformer // the empty prefix: each is asked until one can
	for _, layer := range []*encryptionconfig.EncryptionConfiguration{g.given, g.own} {
		if names(layer, resource) {
			t := encryptionconfig.StaticTransformers(layer.Transformers).TransformerForResource(resource)
			layers = append(layers, value.PrefixTransformer{Transformer: t})
		}
	}
	f := found{transformer: g.joined(resource, layers)}
	f.guarded = f.transformer != nil && g.of.config.MayWrite != nil && !names(g.given, resource)
	g.known.Store(resource, f)
	return f
}

func (g *generation) joined(resource schema.GroupResource, layers []value.PrefixTransformer) value.Transformer {
	if resource == secrets && len(layers) > 0 {
		layers = append(layers, g.first)
	}
	switch len(layers) {
	case 0:
		return nil
	case 1:
		return layers[0].Transformer
	}
	return value.NewPrefixTransformers(errNoKey, layers...)
}

// writes is the key that own encrypts with; without a name if upstream's code has read it.
func (g *generation) writes() Key {
	if len(g.keys) == 0 {
		return Key{}
	}
	return g.keys[0]
}

// guarded encrypts nothing before it may, and then as is in force at that moment: while it waits, another key may have been put in force.
type guarded struct {
	value.Transformer
	resource schema.GroupResource
	of       *Encryption
}

// TransformToStorage implements value.Transformer.
func (g guarded) TransformToStorage(ctx context.Context, data []byte, dataCtx value.Context) ([]byte, error) {
	for {
		now := g.of.current.Load()
		f := now.find(g.resource)
		if f.transformer == nil {
			return data, nil
		}
		if f.guarded {
			if err := g.of.config.MayWrite(ctx, now.writes()); err != nil {
				return nil, err
			}
		}
		if g.of.current.Load() == now {
			return f.transformer.TransformToStorage(ctx, data, dataCtx)
		}
	}
}

// found is what a resource's values go through, nil if nothing; guarded says that the cluster's own keys encrypt it.
type found struct {
	transformer value.Transformer
	guarded     bool
}

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
