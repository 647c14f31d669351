package podspec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
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
	// readableFieldPaths are all that have a meaning somewhere.
	readableFieldPaths = []string{
		"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName", "spec.restartPolicy",
		"spec.serviceAccountName", "spec.schedulerName", "status.phase", "status.hostIP", "status.hostIPs", "status.podIP", "status.podIPs",
	}
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

// validateEnvFiles asks that a file of variables is in a volume which containers fill.
func validateEnvFiles(env []corev1.EnvVar, volumes []corev1.Volume, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i := range env {
		if env[i].ValueFrom == nil || env[i].ValueFrom.FileKeyRef == nil {
			continue
		}
		name, at := env[i].ValueFrom.FileKeyRef.VolumeName, path.Index(i).Child("valueFrom", "fileKeyRef", "volumeName")
		named := func(v corev1.Volume) bool { return v.Name == name }
		switch found := slices.IndexFunc(volumes, named); {
		case found < 0:
			errs = append(errs, field.NotFound(at, name))
		case volumes[found].EmptyDir == nil:
			errs = append(errs, field.Invalid(at, name, "referenced volume must be of type emptyDir"))
		}
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
		errs = append(
			errs,
			field.Invalid(
				path,
				"",
				"must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef`, or `fileKeyRef`",
			),
		)
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
	if ref.APIVersion != "v1" {
		return field.ErrorList{field.Invalid(at, ref.FieldPath, "error converting fieldPath: unsupported pod version: "+ref.APIVersion)}
	}
	base, rest, subscripted := strings.Cut(ref.FieldPath, "['")
	key, closed := strings.CutSuffix(rest, "']")
	if !subscripted || !closed {
		if !slices.Contains(allowed, ref.FieldPath) && !slices.Contains(readableFieldPaths, ref.FieldPath) {
			return field.ErrorList{field.Invalid(at, ref.FieldPath, "error converting fieldPath: field label not supported: "+ref.FieldPath)}
		}
		return rule.OneOf(ref.FieldPath, allowed, at)
	}
	var msgs []string
	switch base {
	case "metadata.annotations":
		msgs = utilvalidation.IsQualifiedName(strings.ToLower(key))
	case "metadata.labels":
		msgs = utilvalidation.IsQualifiedName(key)
	default:
		why := "error converting fieldPath: field label does not support subscript: " + ref.FieldPath
		return field.ErrorList{field.Invalid(at, ref.FieldPath, why)}
	}
	return rule.Invalid(key, msgs, at)
}

// validateResourceFieldRef: in a volume the file cannot know which container is meant.
func validateResourceFieldRef(ref *corev1.ResourceFieldSelector, inVolume bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	at := path.Child("resource")
	switch {
	case inVolume && ref.ContainerName == "":
		errs = append(errs, field.Required(path.Child("containerName"), ""))
	case ref.Resource == "":
		errs = append(errs, field.Required(at, ""))
	case !isHugePages(ref.Resource):
		errs = append(errs, rule.OneOf(ref.Resource, resourceFields, at)...)
	}
	return append(errs, validateDivisor(ref.Resource, ref.Divisor, path.Child("divisor"))...)
}

func isHugePages(resource string) bool {
	return strings.HasPrefix(resource, "limits.hugepages-") || strings.HasPrefix(resource, "requests.hugepages-")
}

// The units that a resource can be told in.
var (
	cpuDivisors  = sets.New("1m", "1")
	byteDivisors = sets.New("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")
)

const byteDivisorsText = "only divisor's values 1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei are supported with the %s resource"

func validateDivisor(name string, divisor resource.Quantity, path *field.Path) field.ErrorList {
	if divisor.IsZero() {
		return nil
	}
	allowed, why := byteDivisors, ""
	switch {
	case strings.HasSuffix(name, ".cpu"):
		allowed, why = cpuDivisors, "only divisor's values 1m and 1 are supported with the cpu resource"
	case strings.HasSuffix(name, ".memory"):
		why = fmt.Sprintf(byteDivisorsText, "memory")
	case strings.HasSuffix(name, ".ephemeral-storage"):
		why = fmt.Sprintf(byteDivisorsText, "local ephemeral storage")
	case isHugePages(name):
		why = fmt.Sprintf(byteDivisorsText, "hugepages")
	}
	if why == "" || allowed.Has(divisor.String()) {
		return nil
	}
	return field.ErrorList{field.Invalid(path, name, why)}
}

func validateKeyRef(name, key string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	errs = append(errs, rule.Subdomain(name, path.Child("name"))...)
	if key == "" {
		return append(errs, field.Required(path.Child("key"), ""))
	}
	return append(errs, rule.DataKey(key, path.Child("key"))...)
}

func validateFileKeyRef(ref *corev1.FileKeySelector, path *field.Path) field.ErrorList {
	errs := requireFields(path, "key", ref.Key, "volumeName", ref.VolumeName, "path", ref.Path)
	if ref.Key != "" {
		errs = append(errs, rule.Invalid(ref.Key, utilvalidation.IsRelaxedEnvVarName(ref.Key), path.Child("key"))...)
	}
	if ref.VolumeName != "" {
		errs = append(errs, rule.Label(ref.VolumeName, path.Child("volumeName"))...)
	}
	return append(errs, NoBacksteps(ref.Path, path.Child("path"))...)
}

func validateEnvFrom(sources []corev1.EnvFromSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	for i, from := range sources {
		at := path.Index(i)
		if from.Prefix != "" {
			errs = append(errs, rule.Invalid(from.Prefix, utilvalidation.IsRelaxedEnvVarName(from.Prefix), at.Child("prefix"))...)
		}
		if from.ConfigMapRef != nil {
			errs = append(errs, requiredSubdomain(from.ConfigMapRef.Name, at.Child("configMapRef", "name"))...)
		}
		if from.SecretRef != nil {
			errs = append(errs, requiredSubdomain(from.SecretRef.Name, at.Child("secretRef", "name"))...)
		}
		switch { // about the list, as upstream says it
		case from.ConfigMapRef == nil && from.SecretRef == nil:
			errs = append(errs, field.Invalid(path, "", "must specify one of: `configMapRef` or `secretRef`"))
		case from.ConfigMapRef != nil && from.SecretRef != nil:
			errs = append(errs, field.Invalid(path, "", "may not have more than one field specified at a time"))
		}
	}
	return errs
}

// requiredSubdomain is Subdomain with a message of its own for a missing name.
func requiredSubdomain(name string, path *field.Path) field.ErrorList {
	if name == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	return rule.Subdomain(name, path)
}
