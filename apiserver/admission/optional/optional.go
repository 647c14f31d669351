package optional

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/util/flowcontrol"
)

// Config is what the plugins decide by. All fields are required.
type Config struct {
	// Authorizer says what a user may do, beyond the request.
	Authorizer authorizer.UnconditionalAuthorizer
	// Mapper says which resource a kind is.
	Mapper meta.RESTMapper
	// Namespace reads a namespace, and answers NotFound only after it has asked the whole cluster.
	Namespace func(ctx context.Context, name string) (*corev1.Namespace, error)
	// Configuration is the text for a plugin in the administrator's file, nil without one.
	Configuration func(plugin string) []byte
	Clock         flowcontrol.Clock
}

// makers make the plugins by upstream's names. A new plugin is one file and one line.
var makers = map[string]func(Config) (admission.Interface, error){
	"LimitPodHardAntiAffinityTopology":     func(Config) (admission.Interface, error) { return antiAffinity{}, nil },
	"AlwaysPullImages":                     func(Config) (admission.Interface, error) { return pullImages{}, nil },
	"ImagePolicyWebhook":                   newImagePolicy,
	"PodNodeSelector":                      newNodeSelector,
	"PodTolerationRestriction":             newTolerations,
	"EventRateLimit":                       newEventRate,
	"ExtendedResourceToleration":           func(Config) (admission.Interface, error) { return extendedToleration{}, nil },
	"OwnerReferencesPermissionEnforcement": func(c Config) (admission.Interface, error) { return owners{c.Authorizer, c.Mapper}, nil },
}

// New makes the plugins of these names.
func New(config Config, names []string) (map[string]admission.Interface, error) {
	made := map[string]admission.Interface{}
	for _, name := range names {
		maker, known := makers[name]
		if !known {
			return nil, fmt.Errorf("there is no admission plugin %s", name)
		}
		plugin, err := maker(config)
		if err != nil {
			return nil, fmt.Errorf("admission plugin %s: %w", name, err)
		}
		made[name] = plugin
	}
	return made, nil
}

// onCreate is embedded by plugins that look at new objects only.
type onCreate struct{}

// Handles implements admission.Interface.
func (onCreate) Handles(op admission.Operation) bool { return op == admission.Create }

// onWrite is embedded by plugins that look at new objects and at changes.
type onWrite struct{}

// Handles implements admission.Interface.
func (onWrite) Handles(op admission.Operation) bool {
	return op == admission.Create || op == admission.Update
}

// podOf returns the pod itself that a request creates or changes, or nil.
func podOf(a admission.Attributes) *corev1.Pod {
	if a.GetSubresource() != "" || a.GetResource().GroupResource() != corev1.Resource("pods") {
		return nil
	}
	pod, _ := a.GetObject().(*corev1.Pod)
	return pod
}
