package podconfig

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// ConfigError is a container configuration that cannot work as written.
type ConfigError struct{ Message string }

func (e *ConfigError) Error() string { return e.Message }

// Objects looks up what a pod's spec refers to.
type Objects interface {
	ConfigMap(ctx context.Context, namespace, name string) (*corev1.ConfigMap, error)
	Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error)
	// Services lists those of a namespace, from a cache that has synced.
	Services(ctx context.Context, namespace string) ([]*corev1.Service, error)
}

// EnvInput is what an environment depends on beside the container.
type EnvInput struct {
	Pod         *corev1.Pod
	Objects     Objects
	PodIPs      []string
	HostIPs     []string
	Allocatable corev1.ResourceList
	// File reads a file of a volume of the pod, by its path there, of at most EnvFileSizeMax bytes. What containers wrote there is
	// hostile. An error is fs.ErrNotExist if there is none.
	File func(volume, path string) ([]byte, error)
}

// environment collects variables; a later value of a name replaces the earlier
// one but keeps its place.
type environment struct {
	names  []string
	values map[string]string
}

func (e *environment) set(name, value string) {
	if _, ok := e.values[name]; !ok {
		e.names = append(e.names, name)
	}
	e.values[name] = value
}

// Env is c's environment: services first, then envFrom, then env, each able to
// refer to what came before.
func Env(ctx context.Context, in EnvInput, c *corev1.Container) ([]*runtimeapi.KeyValue, error) {
	var services map[string]string
	if !IsStatic(in.Pod) { // there may be no API to ask
		var err error
		if services, err = serviceEnv(ctx, in); err != nil {
			return nil, err
		}
	}
	env := &environment{values: map[string]string{}}
	for i := range c.EnvFrom {
		if err := env.addSource(ctx, in, &c.EnvFrom[i]); err != nil {
			return nil, err
		}
	}
	for i := range c.Env {
		if err := env.addVar(ctx, in, c, &c.Env[i], services); err != nil {
			return nil, err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(services)) {
		if _, ok := env.values[name]; !ok {
			env.set(name, services[name])
		}
	}
	out := make([]*runtimeapi.KeyValue, len(env.names))
	for i, name := range env.names {
		out[i] = &runtimeapi.KeyValue{Key: name, Value: []byte(env.values[name])}
	}
	return out, nil
}

// addSource adds every key of a ConfigMap or Secret. Keys that cannot be
// variable names are left out, as upstream does.
func (e *environment) addSource(ctx context.Context, in EnvInput, src *corev1.EnvFromSource) error {
	data := map[string]string{}
	switch {
	case src.ConfigMapRef != nil:
		cm, err := in.Objects.ConfigMap(ctx, in.Pod.Namespace, src.ConfigMapRef.Name)
		if err != nil {
			return missing(err, src.ConfigMapRef.Optional)
		}
		data = cm.Data
	case src.SecretRef != nil:
		secret, err := in.Objects.Secret(ctx, in.Pod.Namespace, src.SecretRef.Name)
		if err != nil {
			return missing(err, src.SecretRef.Optional)
		}
		for k, v := range secret.Data {
			data[k] = string(v)
		}
	}
	for _, k := range slices.Sorted(maps.Keys(data)) {
		if name := src.Prefix + k; len(validation.IsRelaxedEnvVarName(name)) == 0 {
			e.set(name, data[k])
		}
	}
	return nil
}

// missing forgives an optional object and names a required one as the
// user's mistake; other errors pass, they may heal.
func missing(err error, optional *bool) error {
	if !apierrors.IsNotFound(err) {
		return err
	}
	if optional != nil && *optional {
		return nil
	}
	if s, ok := errors.AsType[*apierrors.StatusError](err); ok && s.ErrStatus.Details != nil {
		d := s.ErrStatus.Details
		return &ConfigError{Message: fmt.Sprintf("%s %q not found", singular(d.Kind), d.Name)}
	}
	return &ConfigError{Message: err.Error()}
}

func singular(kind string) string {
	switch kind {
	case "configmaps":
		return "configmap"
	case "secrets":
		return "secret"
	default:
		return kind
	}
}

func (e *environment) addVar(ctx context.Context, in EnvInput, c *corev1.Container, v *corev1.EnvVar, services map[string]string) error {
	if v.ValueFrom == nil {
		e.set(v.Name, Expand(v.Value, e.values, services))
		return nil
	}
	value, ok, err := resolve(ctx, in, c, v.ValueFrom)
	if err == nil && ok {
		e.set(v.Name, value)
	}
	return err
}

// resolve returns ok=false for an optional source that is not there.
func resolve(ctx context.Context, in EnvInput, c *corev1.Container, from *corev1.EnvVarSource) (value string, ok bool, err error) {
	switch {
	case from.FieldRef != nil:
		value, err = Field(in.Pod, from.FieldRef.FieldPath, in.PodIPs, in.HostIPs)
		return value, true, err
	case from.ResourceFieldRef != nil:
		value, err = Resource(in.Pod, c, from.ResourceFieldRef, in.Allocatable)
		return value, true, err
	case from.ConfigMapKeyRef != nil:
		return configMapKey(ctx, in, from.ConfigMapKeyRef)
	case from.SecretKeyRef != nil:
		return secretKey(ctx, in, from.SecretKeyRef)
	case from.FileKeyRef != nil:
		return fileKey(in, from.FileKeyRef)
	default:
		return "", false, nil
	}
}

func configMapKey(ctx context.Context, in EnvInput, ref *corev1.ConfigMapKeySelector) (string, bool, error) {
	cm, err := in.Objects.ConfigMap(ctx, in.Pod.Namespace, ref.Name)
	if err != nil {
		return "", false, missing(err, ref.Optional)
	}
	if v, ok := cm.Data[ref.Key]; ok {
		return v, true, nil
	}
	if ref.Optional != nil && *ref.Optional {
		return "", false, nil
	}
	return "", false, &ConfigError{Message: fmt.Sprintf("couldn't find key %v in ConfigMap %v/%v", ref.Key, in.Pod.Namespace, ref.Name)}
}

func secretKey(ctx context.Context, in EnvInput, ref *corev1.SecretKeySelector) (string, bool, error) {
	secret, err := in.Objects.Secret(ctx, in.Pod.Namespace, ref.Name)
	if err != nil {
		return "", false, missing(err, ref.Optional)
	}
	if v, ok := secret.Data[ref.Key]; ok {
		return string(v), true, nil
	}
	if ref.Optional != nil && *ref.Optional {
		return "", false, nil
	}
	return "", false, &ConfigError{Message: fmt.Sprintf("couldn't find key %v in Secret %v/%v", ref.Key, in.Pod.Namespace, ref.Name)}
}
