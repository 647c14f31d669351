package images

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/runtime/images/credentials"
)

// login is one registry's entry in a docker configuration.
type login struct {
	Username      string `json:"username"`
	Password      string `json:"password"`
	Auth          string `json:"auth"`
	IdentityToken string `json:"identitytoken"`
}

// credential is what to show a registry; both are nil for none.
type credential struct {
	auth  *runtimeapi.AuthConfig
	grant *grant
}

// credentials are those of the pod's pull secrets, then those of plugins, then none.
func (p *Puller) credentials(ctx context.Context, pod *corev1.Pod, image string) []credential {
	out := append(p.secretCredentials(ctx, pod, image), p.pluginCredentials(ctx, pod, image, p.Plugins.Logins)...)
	return append(out, credential{})
}

// pluginLogins asks some of the plugins.
type pluginLogins func(ctx context.Context, image string, asker credentials.Asker) ([]credentials.Login, error)

// pluginCredentials are what plugins say. It is the node's, and so everybody's, unless they were given a token of the pod's account.
func (p *Puller) pluginCredentials(ctx context.Context, pod *corev1.Pod, image string, ask pluginLogins) []credential {
	ref, err := name.ParseReference(image)
	if err != nil {
		return nil
	}
	logins, err := ask(ctx, registryOf(ref)+"/"+ref.Context().RepositoryStr(), credentials.Asker{Pod: pod, Accounts: p.Accounts})
	if err != nil { // the pull may work without them
		p.Events.Event(pod, corev1.EventTypeWarning, "FailedToGetCredentials", err.Error())
	}
	var out []credential
	for _, l := range logins {
		auth := &runtimeapi.AuthConfig{Username: l.Username, Password: l.Password, ServerAddress: l.Server}
		out = append(out, credential{auth, grantOfAccount(l.Account)})
	}
	return out
}

// registryOf is the registry by the name that people know.
func registryOf(ref name.Reference) string {
	if registry := ref.Context().RegistryStr(); registry != name.DefaultRegistry {
		return registry
	}
	return "docker.io"
}

// secretCredentials are those of the pod's pull secrets that match the image's
// registry. A secret that is missing or malformed is skipped: the pull may work
// without it.
func (p *Puller) secretCredentials(ctx context.Context, pod *corev1.Pod, image string) []credential {
	ref, err := name.ParseReference(image)
	if err != nil {
		return nil
	}
	var out []credential
	for _, s := range pod.Spec.ImagePullSecrets {
		secret, err := p.Secret(ctx, pod.Namespace, s.Name)
		if err != nil {
			continue
		}
		for server, l := range logins(secret) {
			if matches(server, ref.Context()) {
				auth := l.auth(server)
				out = append(out, credential{auth, grantOf(pod.Namespace, s.Name, string(secret.UID), auth)})
			}
		}
	}
	return out
}

// tellMissingSecrets says which pull secrets of the pod cannot be read: that may be why a pull failed.
func (p *Puller) tellMissingSecrets(ctx context.Context, pod *corev1.Pod) {
	var missing []string
	for _, s := range pod.Spec.ImagePullSecrets {
		if _, err := p.Secret(ctx, pod.Namespace, s.Name); err != nil {
			missing = append(missing, s.Name)
		}
	}
	if len(missing) > 0 {
		p.Events.Eventf(events.Pod(pod), corev1.EventTypeWarning, events.NoPullSecret,
			"Unable to retrieve some image pull secrets (%s); attempting to pull the image may not succeed.", strings.Join(missing, ", "))
	}
}

func logins(secret *corev1.Secret) map[string]login {
	var file struct {
		Auths map[string]login `json:"auths"`
	}
	if data, ok := secret.Data[corev1.DockerConfigJsonKey]; ok {
		_ = json.Unmarshal(data, &file) // malformed: no logins
		return file.Auths
	}
	_ = json.Unmarshal(secret.Data[corev1.DockerConfigKey], &file.Auths)
	return file.Auths
}

// matches compares a key such as "https://index.docker.io/v1/", "quay.io" or
// "quay.io/team" with a repository.
func matches(server string, repo name.Repository) bool {
	server = strings.TrimPrefix(strings.TrimPrefix(server, "https://"), "http://")
	host, path, _ := strings.Cut(strings.TrimSuffix(server, "/"), "/")
	if host == "docker.io" {
		host = name.DefaultRegistry
	}
	if path == "v1" || path == "v2" {
		path = ""
	}
	return host == repo.RegistryStr() && (path == "" || path == repo.RepositoryStr() || strings.HasPrefix(repo.RepositoryStr(), path+"/"))
}

func (l login) auth(server string) *runtimeapi.AuthConfig {
	a := &runtimeapi.AuthConfig{Username: l.Username, Password: l.Password, IdentityToken: l.IdentityToken, ServerAddress: server}
	if raw, err := base64.StdEncoding.DecodeString(l.Auth); err == nil && a.Username == "" {
		a.Username, a.Password, _ = strings.Cut(string(raw), ":")
	}
	return a
}
