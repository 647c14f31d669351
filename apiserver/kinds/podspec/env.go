package podspec

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// Field paths that a container may read of its pod, in variables and in files.
var (
	envFieldPaths = []string{
		"metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.serviceAccountName",
		"status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	}
	fileFieldPaths = []string{"metadata.name", "metadata.namespace", "metadata.labels", "metadata.annotations", "metadata.uid"}
	resourceFields = []string{
		"limits.cpu", "limits.ephemeral-storage", "limits.memory",
		"requests.cpu", "requests.ephemeral-storage", "requests.memory",
	}
)

func validateEnv(env []corev1.EnvVar, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range env {
		at := path.Index(i)
		if env[i].Name == "" {
			errs = append(errs, field.Required(at.Child("name"), ""))
		} else {
			errs = append(errs, rule.Invalid(env[i].Name, utilvalidation.IsRelaxedEnvVarName(env[i].Name), at.Child("name"))...)
		}
		errs = append(errs, validateEnvSource(&env[i], at.Child("valueFrom"))...)
	}
	return errs
}

func validateEnvSource(env *corev1.EnvVar, path *field.Path) field.ErrorList {
	from := env.ValueFrom
	if from == nil {
		return nil
	}
	var errs field.ErrorList
	sources := 0
	if from.FieldRef != nil {
		sources++
		errs = append(errs, validateFieldRef(from.FieldRef, envFieldPaths, path.Child("fieldRef"))...)
	}
	if from.ResourceFieldRef != nil {
		sources++
		errs = append(errs, validateResourceFieldRef(from.ResourceFieldRef, false, path.Child("resourceFieldRef"))...)
	}
	if ref := from.ConfigMapKeyRef; ref != nil {
		sources++
		errs = append(errs, validateKeyRef(ref.Name, ref.Key, path.Child("configMapKeyRef"))...)
	}
	if ref := from.SecretKeyRef; ref != nil {
		sources++
		errs = append(errs, validateKeyRef(ref.Name, ref.Key, path.Child("secretKeyRef"))...)
	}
	if from.FileKeyRef != nil {
		sources++
		errs = append(errs, validateFileKeyRef(from.FileKeyRef, path.Child("fileKeyRef"))...)
	}
	switch {
	case sources == 0:
		errs = append(errs, field.Invalid(path, "", "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef`, or `fileKeyRef`"))
	case env.Value != "":
		errs = append(errs, field.Invalid(path, "", "may not be specified when `value` is not empty"))
	case sources > 1:
		errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
	}
	return errs
}

func validateFieldRef(ref *corev1.ObjectFieldSelector, allowed []string, path *field.Path) field.ErrorList {
	if ref.APIVersion == "" {
		return field.ErrorList{field.Required(path.Child("apiVersion"), "")}
	}
	at := path.Child("fieldPath")
	if ref.FieldPath == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	base, rest, subscripted := strings.Cut(ref.FieldPath, "['")
	key, closed := strings.CutSuffix(rest, "']")
	if !subscripted || !closed {
		return rule.OneOf(ref.FieldPath, allowed, at)
	}
	var msgs []string
	switch base {
	case "metadata.annotations":
		msgs = utilvalidation.IsQualifiedName(strings.ToLower(key))
	case "metadata.labels":
		msgs = utilvalidation.IsQualifiedName(key)
	default:
		return field.ErrorList{field.Invalid(at, base, "does not support subscript")}
	}
	return rule.Invalid(key, msgs, at)
}

// validateResourceFieldRef: in a volume the file cannot know which container is meant.
func validateResourceFieldRef(ref *corev1.ResourceFieldSelector, inVolume bool, path *field.Path) field.ErrorList {
	if inVolume && ref.ContainerName == "" {
		return field.ErrorList{field.Required(path.Child("containerName"), "")}
	}
	at := path.Child("resource")
	if ref.Resource == "" {
		return field.ErrorList{field.Required(at, "")}
	}
	if strings.HasPrefix(ref.Resource, "limits.hugepages-") || strings.HasPrefix(ref.Resource, "requests.hugepages-") {
		return nil
	}
	return rule.OneOf(ref.Resource, resourceFields, at)
}

func validateKeyRef(name, key string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	if key == "" {
		return append(errs, field.Required(path.Child("key"), ""))
	}
	return append(errs, rule.DataKey(key, path.Child("key"))...)
}

func validateFileKeyRef(ref *corev1.FileKeySelector, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if ref.Key == "" {
		errs = append(errs, field.Required(path.Child("key"), ""))
	}
	if ref.VolumeName == "" {
		errs = append(errs, field.Required(path.Child("volumeName"), ""))
	}
	if ref.Path == "" {
		return append(errs, field.Required(path.Child("path"), ""))
	}
	return append(errs, validateDescendingPath(ref.Path, path.Child("path"))...)
}

func validateEnvFrom(sources []corev1.EnvFromSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, from := range sources {
		at := path.Index(i)
		if from.Prefix != "" {
			errs = append(errs, rule.Invalid(from.Prefix, utilvalidation.IsRelaxedEnvVarName(from.Prefix), at.Child("prefix"))...)
		}
		if from.ConfigMapRef != nil && from.ConfigMapRef.Name == "" {
			errs = append(errs, field.Required(at.Child("configMapRef", "name"), ""))
		}
		if from.SecretRef != nil && from.SecretRef.Name == "" {
			errs = append(errs, field.Required(at.Child("secretRef", "name"), ""))
		}
		switch {
		case from.ConfigMapRef == nil && from.SecretRef == nil:
			errs = append(errs, field.Invalid(at, "", "must specify one of: `configMapRef` or `secretRef`"))
		case from.ConfigMapRef != nil && from.SecretRef != nil:
			errs = append(errs, field.Invalid(at, "", "may not have more than one field specified at a time"))
		}
	}
	return errs
}
