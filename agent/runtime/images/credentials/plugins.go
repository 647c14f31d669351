package credentials

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
	kubeletv1 "k8s.io/kubelet/config/v1"
	credentialv1 "k8s.io/kubelet/pkg/apis/credentialprovider/v1"
)

const (
	// answerTimeMax bounds one run of a plugin, as upstream's.
	answerTimeMax = time.Minute
	// pipeTimeMax is how long what a plugin has started may keep its output open after it.
	pipeTimeMax = time.Second
	// answerBytesMax is more than any answer has.
	answerBytesMax = 1 << 20
	// answersMax are kept of each plugin.
	answersMax = 1 << 10
)

// Login is what to show a registry.
type Login struct {
	Server, Username, Password string
	// Account is by whose token a plugin gave it; nil: it is the node's.
	Account *Account
}

// Plugins are those of a configuration. A nil one has none. It is safe for concurrent use.
type Plugins struct {
	dir  string
	list []*plugin
}

// plugin is a program.
type plugin struct {
	config  kubeletv1.CredentialProvider
	path    string
	flights singleflight.Group
	answers *cache.LRUExpireCache // by key: map[string]credentialv1.AuthConfig
}

// Logins are those for an image, a registry's name and a path without a tag, the most specific first; err says which plugins
// failed.
func (p *Plugins) Logins(ctx context.Context, image string, asker Asker) ([]Login, error) {
	return p.logins(ctx, image, asker, func(*plugin) bool { return true })
}

// AccountLogins are those of the plugins that get tokens of service accounts.
func (p *Plugins) AccountLogins(ctx context.Context, image string, asker Asker) ([]Login, error) {
	return p.logins(ctx, image, asker, func(one *plugin) bool { return one.config.TokenAttributes != nil })
}

func (p *Plugins) logins(ctx context.Context, image string, asker Asker, chosen func(*plugin) bool) (logins []Login, err error) {
	if p == nil {
		return nil, nil
	}
	for _, one := range p.list {
		if !chosen(one) || !slices.ContainsFunc(one.config.MatchImages, func(pattern string) bool { return matches(pattern, image) }) {
			continue
		}
		got, failed := one.logins(ctx, image, asker)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("credential provider %s: %w", one.config.Name, failed))
		}
		logins = append(logins, got...)
	}
	return logins, err
}

func (p *plugin) logins(ctx context.Context, image string, asker Asker) (logins []Login, err error) {
	who, ok, err := p.identify(ctx, asker)
	if err != nil || !ok {
		return nil, err
	}
	auth, err := p.ask(ctx, image, asker, who)
	if err != nil {
		return nil, err
	}
	servers := slices.SortedFunc(maps.Keys(auth), func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	for _, server := range servers {
		if matches(server, image) {
			logins = append(logins, Login{server, auth[server].Username, auth[server].Password, who.origin()})
		}
	}
	return logins, nil
}

// ask runs the program, unless it has answered for this image, its registry or everything. Pulls of one image that come
// meanwhile wait for the same answer. Answers for one identity are not those for another.
func (p *plugin) ask(ctx context.Context, image string, asker Asker, who identity) (map[string]credentialv1.AuthConfig, error) {
	for kind := range cacheKeys {
		if known, ok := p.answers.Get(keyOf(kind, image, who)); ok {
			return known.(map[string]credentialv1.AuthConfig), nil
		}
	}
	auth, err, _ := p.flights.Do(image+" "+who.key, func() (any, error) { return p.run(context.WithoutCancel(ctx), image, asker, who) })
	if err != nil {
		return nil, err
	}
	return auth.(map[string]credentialv1.AuthConfig), nil
}

// cacheKeys say for which images an answer is good.
var cacheKeys = map[credentialv1.PluginCacheKeyType]func(image string) string{
	credentialv1.ImagePluginCacheKeyType:    func(image string) string { return image },
	credentialv1.RegistryPluginCacheKeyType: func(image string) string { registry, _, _ := strings.Cut(image, "/"); return registry },
	credentialv1.GlobalPluginCacheKeyType:   func(string) string { return "" },
}

func keyOf(kind credentialv1.PluginCacheKeyType, image string, who identity) string {
	return string(kind) + " " + cacheKeys[kind](image) + " " + who.key
}

// run asks the program, with a token if it is to have one, and keeps its answer.
func (p *plugin) run(ctx context.Context, image string, asker Asker, who identity) (map[string]credentialv1.AuthConfig, error) {
	token, fresh, err := p.token(ctx, asker, who)
	if err != nil {
		return nil, err
	}
	request := credentialv1.CredentialProviderRequest{Image: image, ServiceAccountToken: token, ServiceAccountAnnotations: who.annotations}
	response, err := p.answer(ctx, &request)
	if err != nil {
		return nil, err
	}
	ofToken := token != "" && p.config.TokenAttributes.CacheType == kubeletv1.TokenServiceAccountTokenCacheType
	if token != "" && !ofToken && echoes(response, token) {
		return nil, errEcho
	}
	keep := p.config.DefaultCacheDuration.Duration
	if response.CacheDuration != nil {
		keep = response.CacheDuration.Duration
	}
	if ofToken {
		keep = min(keep, fresh)
	}
	if keep > 0 {
		p.answers.Add(keyOf(response.CacheKeyType, image, who), response.Auth, keep)
	}
	return response.Auth, nil
}

func echoes(response *credentialv1.CredentialProviderResponse, token string) bool {
	for _, auth := range response.Auth {
		if auth.Password == token {
			return true
		}
	}
	return false
}

// answer is what the program says to the request, if it is one.
func (p *plugin) answer(
	ctx context.Context, request *credentialv1.CredentialProviderRequest,
) (*credentialv1.CredentialProviderResponse, error) {
	request.APIVersion, request.Kind = p.config.APIVersion, "CredentialProviderRequest"
	text, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	out, err := p.execute(ctx, text)
	if err != nil {
		return nil, err
	}
	var response credentialv1.CredentialProviderResponse
	if err := json.Unmarshal(out, &response); err != nil {
		return nil, errors.New("its answer is no JSON of a CredentialProviderResponse") // the error could quote the answer
	}
	if response.Kind != "CredentialProviderResponse" || response.APIVersion != p.config.APIVersion {
		return nil, fmt.Errorf("answered with %q %q, want CredentialProviderResponse of %s", response.APIVersion, response.Kind, p.config.APIVersion)
	}
	if cacheKeys[response.CacheKeyType] == nil {
		return nil, fmt.Errorf("cacheKeyType: %q", response.CacheKeyType)
	}
	return &response, nil
}

var errAnswerSize = fmt.Errorf("its answer is longer than %d bytes", answerBytesMax)

// execute gives the program the request and returns what it prints. What it says on standard error may be secret.
func (p *plugin) execute(ctx context.Context, request []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeMax)
	defer cancel()
	command := exec.CommandContext(ctx, p.path, p.config.Args...)
	command.WaitDelay = pipeTimeMax
	command.Env = os.Environ()
	for _, e := range p.config.Env {
		command.Env = append(command.Env, e.Name+"="+e.Value)
	}
	out := &bounded{stop: cancel}
	command.Stdin, command.Stdout = bytes.NewReader(request), out
	err := command.Run()
	switch {
	case out.full:
		return nil, errAnswerSize
	case ctx.Err() != nil:
		return nil, fmt.Errorf("no answer within %s", answerTimeMax)
	case err != nil:
		return nil, err
	}
	return out.text, nil
}

// bounded takes answerBytesMax, and ends the program that says more. It is no bytes.Buffer, whose ReadFrom knows no bound.
type bounded struct {
	text []byte
	full bool
	stop context.CancelFunc
}

func (b *bounded) Write(text []byte) (int, error) {
	if len(b.text)+len(text) > answerBytesMax {
		b.full = true
		b.stop()
		return 0, errAnswerSize
	}
	b.text = append(b.text, text...)
	return len(text), nil
}
