package manifests

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/admission/initializer"
	policyconfig "k8s.io/apiserver/pkg/admission/plugin/policy/config"
	policyloader "k8s.io/apiserver/pkg/admission/plugin/policy/manifest/loader"
	webhookconfig "k8s.io/apiserver/pkg/admission/plugin/webhook/config"
	webhookloader "k8s.io/apiserver/pkg/admission/plugin/webhook/manifest/loader"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"

	"github.com/setpoint-io/setpoint/apiserver/kinds/admissionregistration"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/internal/reread"
)

// Short names of upstream's types.
type (
	validatingHooks   = admissionregistrationv1.ValidatingWebhookConfiguration
	mutatingHooks     = admissionregistrationv1.MutatingWebhookConfiguration
	validatingPolicy  = admissionregistrationv1.ValidatingAdmissionPolicy
	validatingBinding = admissionregistrationv1.ValidatingAdmissionPolicyBinding
	mutatingPolicy    = admissionregistrationv1.MutatingAdmissionPolicy
	mutatingBinding   = admissionregistrationv1.MutatingAdmissionPolicyBinding
)

// Loaders returns what upstream's plugins read files with. The logger, if any, is told of mistakes, of each once: while they are there,
// what was read before stays in force.
func Loaders(logger *slog.Logger) (*initializer.ManifestLoaders, error) {
	decoder, err := newDecoder()
	if err != nil {
		return nil, err
	}
	tell := newTeller(logger)
	return &initializer.ManifestLoaders{
		LoadValidatingWebhookManifests: func(dir string) ([]*validatingHooks, string, error) {
			hooks, hash, err := webhookloader.LoadManifests(dir, decoder, accept[*validatingHooks])
			return hooks, hash, tell(dir, err)
		},
		LoadMutatingWebhookManifests: func(dir string) ([]*mutatingHooks, string, error) {
			hooks, hash, err := webhookloader.LoadManifests(dir, decoder, accept[*mutatingHooks])
			return hooks, hash, tell(dir, err)
		},
		LoadValidatingPolicyManifests: func(dir string) ([]*validatingPolicy, []*validatingBinding, string, error) {
			policies, bindings, hash, err := policyloader.LoadPolicyManifests(dir, decoder, accept[*validatingPolicy], accept[*validatingBinding],
				func(b *validatingBinding) string { return b.Spec.PolicyName })
			return policies, bindings, hash, tell(dir, err)
		},
		LoadMutatingPolicyManifests: func(dir string) ([]*mutatingPolicy, []*mutatingBinding, string, error) {
			policies, bindings, hash, err := policyloader.LoadPolicyManifests(dir, decoder, accept[*mutatingPolicy], accept[*mutatingBinding],
				func(b *mutatingBinding) string { return b.Spec.PolicyName })
			return policies, bindings, hash, tell(dir, err)
		},
	}, nil
}

// newTeller returns a function that logs an error of a folder unless that was the last one there, and returns it.
func newTeller(logger *slog.Logger) func(dir string, err error) error {
	var told reread.Told // by folder
	return func(dir string, err error) error {
		if logger != nil && told.IsNew(dir, err) {
			logger.Warn("webhooks or policies in files were not taken; what was read before stays in force", "folder", dir, "err", err)
		}
		return err
	}
}

// newDecoder knows the kinds of the group and lists of any kind. Fields that nobody knows are errors.
func newDecoder() (runtime.Decoder, error) {
	scheme := runtime.NewScheme()
	if err := admissionregistrationv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	scheme.AddUnversionedTypes(metav1.SchemeGroupVersion, &metav1.List{}, &metav1.Status{})
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer(), nil
}

// accept returns the objects of one kind, alone or in a list of that kind, complete and judged.
func accept[T resource.Object](obj runtime.Object) ([]T, error) {
	all := []runtime.Object{obj}
	if meta.IsListType(obj) {
		var err error
		if all, err = meta.ExtractList(obj); err != nil {
			return nil, err
		}
	}
	var accepted []T
	for _, item := range all {
		one, ok := item.(T)
		if !ok {
			return nil, fmt.Errorf("%w %T", policyloader.ErrUnrecognizedType, item)
		}
		if err := admissionregistration.Manifest(one); err != nil {
			return nil, err
		}
		accepted = append(accepted, one)
	}
	return accepted, nil
}

// Check reads the folder that a plugin's configuration names, and says what is wrong. Without one there is no folder.
func Check(loaders *initializer.ManifestLoaders, plugin string, configuration []byte) (folder string, err error) {
	if len(configuration) == 0 {
		return "", nil
	}
	folder, load, err := folderOf(loaders, plugin, bytes.NewReader(configuration))
	if err == nil && folder != "" {
		err = load(folder)
	}
	if err != nil {
		return "", fmt.Errorf("admission plugin %s: %w", plugin, err)
	}
	return folder, nil
}

// folderOf reads a configuration in the form that the plugin has, and returns the folder and how it is read.
func folderOf(l *initializer.ManifestLoaders, plugin string, text io.Reader) (folder string, load func(string) error, err error) {
	switch plugin {
	case "ValidatingAdmissionPolicy":
		config, err := policyconfig.LoadValidatingConfig(text)
		return config.StaticManifestsDir, func(dir string) error { _, _, _, err := l.LoadValidatingPolicyManifests(dir); return err }, err
	case "MutatingAdmissionPolicy":
		config, err := policyconfig.LoadMutatingConfig(text)
		return config.StaticManifestsDir, func(dir string) error { _, _, _, err := l.LoadMutatingPolicyManifests(dir); return err }, err
	}
	config, err := webhookconfig.LoadConfig(text)
	if err != nil {
		return "", nil, err
	}
	if _, err := webhookutil.NewDefaultAuthenticationInfoResolver(config.KubeConfigFile); err != nil {
		return "", nil, fmt.Errorf("kubeConfigFile: %w", err)
	}
	if plugin == "ValidatingAdmissionWebhook" {
		return config.StaticManifestsDir, func(dir string) error { _, _, err := l.LoadValidatingWebhookManifests(dir); return err }, nil
	}
	return config.StaticManifestsDir, func(dir string) error { _, _, err := l.LoadMutatingWebhookManifests(dir); return err }, nil
}
