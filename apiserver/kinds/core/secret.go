package core

import (
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func secrets() resource.Kind[*corev1.Secret] {
	return resource.Kind[*corev1.Secret]{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Secret"),
		Plural:           "secrets",
		New:              func() *corev1.Secret { return &corev1.Secret{} },
		NewList:          func() runtime.Object { return &corev1.SecretList{} },
		Default:          defaultSecret,
		PrepareCreate:    mergeStringData,
		PrepareUpdate:    func(secret, _ *corev1.Secret) { mergeStringData(secret) },
		Validate:         validateSecret,
		ValidateUpdate:   validateSecretUpdate,
		Warnings:         secretWarnings,
		Fields:           func(secret *corev1.Secret) fields.Set { return fields.Set{"type": string(secret.Type)} },
		Columns: []resource.Column[*corev1.Secret]{
			column.Name[*corev1.Secret](),
			column.Text("Type", corev1.Secret{}.SwaggerDoc()["type"], 0, func(secret *corev1.Secret) string { return string(secret.Type) }),
			column.Count(
				"Data",
				corev1.Secret{}.SwaggerDoc()["data"],
				func(secret *corev1.Secret) int64 { return int64(len(secret.Data)) },
			),
			column.Age[*corev1.Secret](),
		},
	}
}

// defaultSecret also moves stringData, which is for writing only, into data.
func defaultSecret(secret *corev1.Secret) {
	rule.Default(&secret.Type, corev1.SecretTypeOpaque)
	mergeStringData(secret)
}

func mergeStringData(secret *corev1.Secret) {
	if len(secret.StringData) > 0 && secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, value := range secret.StringData {
		secret.Data[key] = []byte(value)
	}
	secret.StringData = nil
}

func validateSecret(secret *corev1.Secret) field.ErrorList {
	var errs field.ErrorList
	data, size := field.NewPath("data"), 0
	for key, value := range secret.Data {
		errs = append(errs, rule.DataKey(key, data.Key(key))...)
		size += len(value)
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(data, "", corev1.MaxSecretSize))
	}
	return append(errs, validateSecretType(secret, data)...)
}

// validateSecretType asks for the keys that the readers of a type rely on.
func validateSecretType(secret *corev1.Secret, data *field.Path) field.ErrorList {
	switch secret.Type {
	case corev1.SecretTypeServiceAccountToken:
		if secret.Annotations[corev1.ServiceAccountNameKey] == "" {
			return field.ErrorList{field.Required(field.NewPath("metadata", "annotations").Key(corev1.ServiceAccountNameKey), "")}
		}
	case corev1.SecretTypeDockercfg:
		return validateJSONKey(secret, data, corev1.DockerConfigKey)
	case corev1.SecretTypeDockerConfigJson:
		return validateJSONKey(secret, data, corev1.DockerConfigJsonKey)
	case corev1.SecretTypeBasicAuth:
		_, user := secret.Data[corev1.BasicAuthUsernameKey]
		_, password := secret.Data[corev1.BasicAuthPasswordKey]
		if !user && !password {
			return field.ErrorList{
				field.Required(data.Key(corev1.BasicAuthUsernameKey), ""),
				field.Required(data.Key(corev1.BasicAuthPasswordKey), ""),
			}
		}
	case corev1.SecretTypeSSHAuth:
		if len(secret.Data[corev1.SSHAuthPrivateKey]) == 0 {
			return field.ErrorList{field.Required(data.Key(corev1.SSHAuthPrivateKey), "")}
		}
	case corev1.SecretTypeTLS:
		return validateTLSKeys(secret, data)
	}
	return nil
}

func validateJSONKey(secret *corev1.Secret, data *field.Path, key string) field.ErrorList {
	value, found := secret.Data[key]
	if !found {
		return field.ErrorList{field.Required(data.Key(key), "")}
	}
	if err := json.Unmarshal(value, &map[string]any{}); err != nil {
		// The value is a secret: it must not appear in the message.
		return field.ErrorList{field.Invalid(data.Key(key), "<secret contents redacted>", err.Error())}
	}
	return nil
}

func validateTLSKeys(secret *corev1.Secret, data *field.Path) field.ErrorList {
	var errs field.ErrorList
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if _, found := secret.Data[key]; !found {
			errs = append(errs, field.Required(data.Key(key), ""))
		}
	}
	return errs
}

func validateSecretUpdate(secret, old *corev1.Secret) field.ErrorList {
	errs := validation.ValidateImmutableField(secret.Type, old.Type, field.NewPath("type"))
	if rule.IsTrue(old.Immutable) {
		if !rule.IsTrue(secret.Immutable) {
			errs = append(errs, field.Forbidden(field.NewPath("immutable"), "field is immutable when `immutable` is set"))
		}
		if !equality.Semantic.DeepEqual(secret.Data, old.Data) {
			errs = append(errs, field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set"))
		}
	}
	return append(errs, validateSecret(secret)...)
}
