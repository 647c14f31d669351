package core

import (
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

const enforceMountableSecrets = "kubernetes.io/enforce-mountable-secrets"

func serviceAccounts() resource.Kind[*corev1.ServiceAccount] {
	return resource.Kind[*corev1.ServiceAccount]{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ServiceAccount"),
		Plural:           "serviceaccounts",
		ReturnDeleted:    true,
		ShortNames:       []string{"sa"},
		New:              func() *corev1.ServiceAccount { return &corev1.ServiceAccount{} },
		NewList:          func() runtime.Object { return &corev1.ServiceAccountList{} },
		ChangeWarnings:   accountWarnings,
		Subresources: []resource.Subresource{
			{Name: "token", Kind: authenticationv1.SchemeGroupVersion.WithKind("TokenRequest"), Verbs: []string{"create"}},
		},
		Columns: []resource.Column[*corev1.ServiceAccount]{
			column.Name[*corev1.ServiceAccount](),
			column.Age[*corev1.ServiceAccount](),
		},
	}
}

// accountWarnings are for who sets the annotation, not for who keeps it.
func accountWarnings(account, old *corev1.ServiceAccount) []string {
	var had bool
	if old != nil {
		_, had = old.Annotations[enforceMountableSecrets]
	}
	if _, has := account.Annotations[enforceMountableSecrets]; !has || had {
		return nil
	}
	return []string{fmt.Sprintf("metadata.annotations[%s]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets",
		enforceMountableSecrets)}
}
