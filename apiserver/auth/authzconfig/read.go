package authzconfig

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/apis/apiserver"
	"k8s.io/apiserver/pkg/apis/apiserver/load"
	"k8s.io/apiserver/pkg/apis/apiserver/validation"
	"k8s.io/apiserver/pkg/authorization/cel"
)

// Upstream's types of authorizers, but for webhooks.
const (
	node apiserver.AuthorizerType = "Node"
	rbac apiserver.AuthorizerType = "RBAC"
)

// refused are upstream's other types, and why they are not here.
var refused = map[apiserver.AuthorizerType]string{
	"AlwaysAllow": "everybody would be an administrator",
	"AlwaysDeny":  "what nobody allows is refused in any case",
	"ABAC":        "there are no policy files; write roles (RBAC)",
}

var errOrder = errors.New("authorizers: Node and RBAC must both be there, RBAC right after Node: nodes and control loops have their rights by them")

// readAll returns the text of the file, behind a hash of the kubeconfigs that it names: what is right depends on them too.
func readAll(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	others := sha256.New()
	if c, err := load.LoadFromData(text); err == nil { // else parse says what is wrong
		for _, one := range c.Authorizers {
			if one.Webhook != nil && one.Webhook.ConnectionInfo.KubeConfigFile != nil {
				content, err := os.ReadFile(*one.Webhook.ConnectionInfo.KubeConfigFile)
				fmt.Fprintf(others, "%d %s %v\n", len(content), content, err)
			}
		}
	}
	return append(others.Sum(nil), text...), nil
}

// parse reads the text of a file, and says what is wrong or cannot be honoured.
func parse(text []byte, compiler cel.Compiler) (*apiserver.AuthorizationConfiguration, error) {
	c, err := load.LoadFromData(text)
	if err != nil {
		return nil, err
	}
	if err := validate(c, compiler); err != nil {
		return nil, err
	}
	return c, nil
}

func validate(c *apiserver.AuthorizationConfiguration, compiler cel.Compiler) error {
	for i, a := range c.Authorizers {
		if err := supported(a); err != nil {
			return fmt.Errorf("authorizers[%d]: %w", i, err)
		}
	}
	repeatable := sets.New(string(apiserver.TypeWebhook))
	known := sets.New(string(node), string(rbac)).Union(repeatable)
	if err := validation.ValidateAuthorizationConfiguration(compiler, nil, c, known, repeatable).ToAggregate(); err != nil {
		return err
	}
	if i := slices.IndexFunc(c.Authorizers, isNode); i < 0 || i+1 == len(c.Authorizers) || c.Authorizers[i+1].Type != rbac {
		return errOrder
	}
	return nil
}

func isNode(a apiserver.AuthorizerConfiguration) bool { return a.Type == node }

func supported(a apiserver.AuthorizerConfiguration) error {
	if why, known := refused[a.Type]; known {
		return fmt.Errorf("type %s is refused: %s", a.Type, why)
	}
	if a.Type != apiserver.TypeWebhook {
		if want := strings.ToLower(string(a.Type)); a.Name != want {
			return fmt.Errorf("name: an authorizer of type %s is called %s, not %q", a.Type, want, a.Name)
		}
		return nil
	}
	if a.Webhook != nil && a.Webhook.ConnectionInfo.Type == apiserver.AuthorizationWebhookConnectionInfoTypeInCluster {
		return errors.New("connectionInfo: type InClusterConfig is refused: a server is no pod; use KubeConfigFile")
	}
	return nil
}
